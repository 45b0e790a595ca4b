// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/randomness.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/switch_routes.h"

namespace rnicsim::sim::bench {
namespace {

bool draws_addresses(const Flow& flow) {
  return flow.address == Addressing::random || flow.address == Addressing::slots || flow.address == Addressing::zipf;
}

void add_flow(const Flow& flow, const std::string& name, std::vector<std::string>& parts) {
  if (draws_addresses(flow)) parts.push_back(name + ".address");
  if (flow.sequence ? flow.sequences.size() > 1 : flow.mix.size() > 1) parts.push_back(name + ".mix");
  if (flow.pick == Pick::random) parts.push_back(name + ".pick");
  if (flow.transport == Transport::raw) parts.push_back(name + ".flows");
}

// Caches of a NIC with random replacement and more than one way.
std::set<std::string> random_caches(const nic::NicParams& nic, bool receives) {
  constexpr std::string_view kRandom = "random";
  std::set<std::string> caches;
  const auto look = [&](const char* name, const std::string& replacement, std::uint32_t ways) {
    if (replacement == kRandom && ways > 1) caches.insert(fmt::format("nic.{}.replacement", name));
  };
  const auto& contexts = nic.contexts;
  look("contexts.qpc", contexts.qpc.replacement, contexts.qpc.ways);
  look("contexts.cqc", contexts.cqc.replacement, contexts.cqc.ways);
  look("contexts.srqc", contexts.srqc.replacement, contexts.srqc.ways);
  look("contexts.mpt", contexts.mpt.replacement, contexts.mpt.ways);
  look("contexts.mtt", contexts.mtt.replacement, contexts.mtt.ways);
  look("atc", nic.atc.replacement, nic.atc.ways);
  look("send_wqes", nic.send_wqes.replacement, nic.send_wqes.ways);
  if (receives) look("receive_wqes", nic.receive_wqes.replacement, nic.receive_wqes.ways);
  return caches;
}

bool has_several_ways(const Topology& topology) {
  const SwitchRoutes routes(topology);
  for (std::uint32_t box = 0; box < topology.switches.size(); ++box)
    if (std::ranges::any_of(routes.ways(box), [](const auto& ways) { return ways.size() > 1; })) return true;
  return false;
}

bool draws_marks(const fabric::EcnParams& ecn) {
  const bool is_step = ecn.kmin == ecn.kmax || (ecn.pmax == 0);
  return ecn.priorities != 0 && !is_step;
}

bool has_lost(const std::vector<fabric::SwitchPortCounters>& ports) {
  return std::ranges::any_of(ports, [](const auto& port) { return port.tx_discards + port.rx_discards != 0; });
}

bool has_jitter(const fabric::SwitchParams& params, const std::vector<fabric::SwitchPortCounters>& ports) {
  const auto& words = fabric::SwitchParams::kJitterWords;
  if (params.jitter == words[1]) return false;
  return params.jitter == words[2] || params.ecn.priorities != 0 || has_lost(ports);
}

bool draws_timeouts(const nic::NicParams& params) {
  const auto& adaptive = params.adaptive_retransmission;
  return adaptive.time_base != Duration{} && adaptive.timeout_init_range_size > 1;
}

void add_switches(const BenchResult& result, std::vector<std::string>& parts) {
  const auto& config = result.system.config();
  bool marks = false, jitter = false;
  for (std::size_t box = 0; box < config.topology.switches.size(); ++box) {
    const auto& params = config.switch_of(box);
    marks = marks || draws_marks(params.ecn);
    jitter = jitter || has_jitter(params, result.runner.after().ports[box]);
  }
  if (marks) parts.emplace_back("switch.ecn");
  if (jitter) parts.emplace_back("switch.jitter");
}

}  // namespace

std::vector<std::string> random_parts(const BenchResult& result) {
  const auto& workload = result.workload;
  const auto& config = result.system.config();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < workload.flows.size(); ++i)
    add_flow(workload.flows[i], fmt::format("flow[{}]", i), parts);
  if (!config.faults.empty()) parts.emplace_back("faults");
  const bool receives = std::ranges::any_of(workload.flows, [](const Flow& flow) { return flow.takes_receives(); });
  std::set<std::string> of_nics;
  for (std::size_t i = 0; i < config.topology.interfaces.size(); ++i) {
    of_nics.merge(random_caches(config.nic_of(i), receives));
    if (draws_timeouts(config.nic_of(i))) of_nics.emplace("nic.adaptive_retransmission");
  }
  parts.insert(parts.end(), of_nics.begin(), of_nics.end());
  if (config.topology.switches.size() > 1 && has_several_ways(config.topology))
    parts.emplace_back("path choices of switches");
  add_switches(result, parts);
  return parts;
}

}  // namespace rnicsim::sim::bench

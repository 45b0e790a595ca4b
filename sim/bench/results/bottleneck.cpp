// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/bench/results/switch_ports.h"
#include "sim/config/config.h"
#include "sim/results/counter_results.h"

namespace rnicsim::sim::bench {
namespace {

// Use above which a resource limits the run: the wait in the queue before it grows with 1 / (1 - use).
constexpr double kUsedUp = 0.9;

constexpr std::string_view kBusyShare = "_busy_share", kBusiestShare = "_busiest_share", kCpu = ".cpu";

std::optional<double> value_of(const std::vector<CounterResult>& results, const std::string& path) {
  const auto found = std::ranges::find(results, path, &CounterResult::path);
  return found == results.end() ? std::nullopt : std::optional(found->value);
}

std::vector<CounterResult> between(const Snapshot& before, const Snapshot& after, std::size_t host) {
  return counter_results(before.hosts[host], after.hosts[host], after.at - before.at);
}

void add_blocks(const BenchResult& result, std::size_t host, std::vector<ResourceUse>& uses) {
  const auto& runner = result.runner;
  const auto whole = between(runner.before(), runner.after(), host);
  std::vector<CounterResult> first, second;
  if (const auto* middle = runner.middle()) {
    first = between(runner.before(), *middle, host);
    second = between(*middle, runner.after(), host);
  }
  for (const auto& share : whole) {
    if (share.kind != CounterResult::Kind::share || !share.path.ends_with(kBusyShare) || share.value <= 0) continue;
    const auto resource = share.path.substr(0, share.path.size() - kBusyShare.size());
    const auto queue = resource + "_queue";
    // Work that is bound to one unit waits for this unit, however idle the other units are.
    const double used = value_of(whole, resource + std::string(kBusiestShare)).value_or(share.value);
    ResourceUse use{resource, result.system.adapter(host).label(), used, value_of(whole, queue), {}};
    const auto early = value_of(first, queue), late = value_of(second, queue);
    if (early && late) use.growth = *late - *early;
    uses.push_back(std::move(use));
  }
}

struct PortInterval {
  const std::vector<fabric::SwitchPortCounters>&before, &after;
  double ps;

  double share(std::size_t port, std::size_t priority,
               std::array<Counter, kPriorities> fabric::SwitchPortCounters::*of) const {
    return static_cast<double>((after[port].*of)[priority] - (before[port].*of)[priority]) / ps;
  }
};

PortInterval port_interval(const Snapshot& before, const Snapshot& after, std::size_t box) {
  return {before.ports[box], after.ports[box], std::max<double>(1, static_cast<double>((after.at - before.at).ps))};
}

// Use of a port by each priority, and by all priorities together.
std::vector<ResourceUse> uses_of_port(const BenchResult& result, std::size_t box, std::size_t port,
                                      const std::string& peer) {
  using Counters = fabric::SwitchPortCounters;
  const auto& runner = result.runner;
  const auto whole = port_interval(runner.before(), runner.after(), box);
  const auto& name = result.system.config().topology.switches[box];
  ResourceUse all{fmt::format("port.{}.tx", peer), name, 0, 0.0, {}};
  all.use = static_cast<double>(whole.after[port].control_ps - whole.before[port].control_ps) / whole.ps;
  all.discards = whole.after[port].tx_discards - whole.before[port].tx_discards;
  std::vector<ResourceUse> priorities;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    ResourceUse use{fmt::format("{}.p{}", all.resource, i),
                    name,
                    whole.share(port, i, &Counters::busy_ps),
                    whole.share(port, i, &Counters::wait_ps),
                    {}};
    use.paused = std::min(whole.share(port, i, &Counters::paused_ps), std::max(0.0, 1 - use.use));
    if (use.paused > 0) use.paused_by = peer;
    if (const auto* middle = runner.middle()) {
      const auto early = port_interval(runner.before(), *middle, box),
                 late = port_interval(*middle, runner.after(), box);
      use.growth = late.share(port, i, &Counters::wait_ps) - early.share(port, i, &Counters::wait_ps);
      all.growth = all.growth.value_or(0) + *use.growth;
    }
    all.use += use.use;
    *all.queue += *use.queue;
    if (use.taken() > 0) priorities.push_back(std::move(use));
  }
  all.use = std::min(all.use, 1.0);  // a frame counts in full, even if only a part of it is within the interval
  // A port with one priority in use, which is not paused, has no line for that priority.
  if (priorities.size() == 1 && priorities.front().paused <= 0) priorities.clear();
  if (all.use > 0 || all.discards > 0) priorities.insert(priorities.begin(), std::move(all));
  return priorities;
}

void add_ports(const BenchResult& result, std::size_t box, std::vector<ResourceUse>& uses) {
  const auto names = result.system.config().topology.port_names(box);
  for (std::size_t port = 0; port < names.size(); ++port)
    for (auto& use : uses_of_port(result, box, port, names[port])) uses.push_back(std::move(use));
}

// Mean over the agents of a flow on one host, for each end of the flow.
void add_cpus(const BenchResult& result, std::vector<ResourceUse>& uses) {
  std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, std::pair<double, std::size_t>> shares;
  for (std::size_t i = 0; i < result.plan.agents.size(); ++i) {
    const auto& agent = result.plan.agents[i];
    if (const auto share = result.runner.busy_share(i)) {
      auto& [sum, count] = shares[{agent.flow, agent.sends, agent.host}];
      sum += *share;
      ++count;
    }
  }
  for (const auto& [key, of] : shares) {
    const auto& [flow, sends, host] = key;
    uses.push_back({fmt::format("flow[{}].{}{}", flow, sends ? "from" : "to", kCpu),
                    result.system.adapter(host).label(),
                    of.first / static_cast<double>(of.second),
                    {},
                    {}});
  }
}

// Slots are held for the duration of a read of host memory. If the link is used up, the link is the cause.
bool waits_for(const ResourceUse& slots, const ResourceUse& link) {
  return slots.resource.ends_with(".slots") && link.resource.starts_with("nic.dma.") && slots.host == link.host &&
         link.use >= kUsedUp;
}

bool is_transmit_port(const BenchResult& result, const ResourceUse& use) {
  return use.resource == "nic.port.tx" || std::ranges::count(result.system.config().topology.switches, use.host) != 0;
}

// Ports that a stream passes one after another are equally busy: the first of them has the queue.
ResourceUse fullest_of_ports(const BenchResult& result, const std::vector<ResourceUse>& uses) {
  constexpr double kAsBusy = 0.02;
  const auto queue = [&](const ResourceUse& use) {
    const bool as_busy = use.use >= uses.front().use - kAsBusy && is_transmit_port(result, use);
    return as_busy ? use.queue.value_or(0) : -1;
  };
  return *std::ranges::max_element(uses, {}, queue);
}

}  // namespace

std::vector<ResourceUse> resource_uses(const BenchResult& result) {
  std::vector<ResourceUse> uses;
  for (std::size_t host = 0; host < result.system.adapters(); ++host) add_blocks(result, host, uses);
  for (std::size_t box = 0; box < result.system.switches(); ++box) add_ports(result, box, uses);
  add_cpus(result, uses);
  std::ranges::stable_sort(uses, std::ranges::greater{}, &ResourceUse::use);
  return uses;
}

ResourceUse limit_of(const BenchResult& result, const std::vector<ResourceUse>& uses) {
  if (!uses.empty() && uses.front().use >= kUsedUp) {
    if (is_transmit_port(result, uses.front())) return fullest_of_ports(result, uses);
    const auto link = std::ranges::find_if(uses, [&](const auto& use) { return waits_for(uses.front(), use); });
    return link == uses.end() ? uses.front() : *link;
  }
  // If all senders wait for a device that pauses them, no resource is used up: the limit is the paused port.
  const auto paused = std::ranges::max_element(
      uses, {}, [](const auto& use) { return use.paused > 0 && use.taken() >= kUsedUp ? use.paused : 0; });
  if (paused != uses.end() && paused->paused > 0 && paused->taken() >= kUsedUp) return *paused;
  const bool paced = std::ranges::all_of(result.workload.flows, [](const Flow& flow) { return flow.pace.has_value(); });
  ResourceUse limit{paced ? "pace" : "latency", {}, 0, {}, {}};
  if (!uses.empty()) limit.use = uses.front().use;
  return limit;
}

// Examples: "h0 nic.port.tx 98 %, 12.3 waiting (+0.1)"; "h0's CPU, 99 % busy (flow[0].from)".
std::string limit_text(const ResourceUse& limit) {
  if (limit.host.empty())
    return fmt::format("{}: no resource is fully used; the busiest is used {:.0f} %", limit.resource, 100 * limit.use);
  if (limit.resource.ends_with(kCpu))
    return fmt::format("{}'s CPU, {:.0f} % busy ({})", limit.host, 100 * limit.use,
                       limit.resource.substr(0, limit.resource.size() - kCpu.size()));
  auto text = fmt::format("{} {} {:.0f} %", limit.host, limit.resource, 100 * limit.use);
  if (limit.paused > 0)
    text += fmt::format(", and {:.0f} % of the time paused by {}", 100 * limit.paused, limit.paused_by);
  if (limit.queue) text += fmt::format(", {:.3g} waiting", *limit.queue);
  if (limit.growth) text += fmt::format(" ({:+.2g})", *limit.growth);
  if (limit.discards > 0) text += fmt::format(", {} frames discarded", limit.discards);
  return text;
}

Json use_json(const ResourceUse& use) {
  Json json = {{"resource", use.resource}, {"host", use.host}, {"use", use.use}};
  if (use.queue) json["queue"] = *use.queue;
  if (use.growth) json["growth"] = *use.growth;
  if (use.paused > 0) {
    json["paused"] = use.paused;
    json["paused_by"] = use.paused_by;
  }
  if (use.discards > 0) json["discards"] = use.discards;
  return json;
}

}  // namespace rnicsim::sim::bench

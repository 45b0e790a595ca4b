// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/results.h"

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/results/counter_list.h"
#include "sim/results/counter_results.h"
#include "sim/results/file_json.h"
#include "sim/results/results_json.h"
#include "sim/system.h"
#include "sim/trace/request_summary.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim::rerun {
namespace {

Json latency_json(const RequestTotals& totals) {
  Histogram all;
  for (const auto& [opcode, latency] : totals.latencies) all.add(latency);
  const auto known = [&](Duration value) { return all.count() == 0 ? Json() : Json(value.ps); };
  return {{"samples", all.count()},
          {"min", known(all.least())},
          {"p50", known(all.percentile(0.5))},
          {"p99", known(all.percentile(0.99))},
          {"p99.9", known(all.percentile(0.999))},
          {"max", known(all.most())},
          {"mean", known(all.mean())}};
}

Json flow_json(const std::string& host, const RequestTotals& totals, std::uint64_t recorded) {
  const auto interval = totals.interval();
  const auto rate = [&](std::uint64_t amount) {
    return interval.ps == 0 ? 0 : static_cast<double>(amount) * 1e12 / static_cast<double>(interval.ps);
  };
  return {{"operations", totals.messages},
          {"interval_ps", interval.ps},
          {"rate_per_s", rate(totals.messages)},
          {"goodput_bits_per_s", 8 * rate(totals.bytes)},
          {"latency_ps", latency_json(totals)},
          {"posted", totals.posted},
          {"parameters", {{"from", host}, {"recorded_requests", recorded}}}};
}

template <class Counters>
Json block_json(const Counters& counters, Duration end) {
  return counters_json(counter_results(CounterList(Counters{}), CounterList(counters), end));
}

}  // namespace

Json results_json(const RerunResult& result) {
  const auto& options = result.options;
  Json json = sim::results_of_command("replay");
  json["recording"] = file_json(options.trace);
  json["nic"] = options.nic.empty() ? "recorded" : options.nic;
  if (!options.host.empty()) json["host"] = options.host;
  json["topology"] = "recorded";
  json["seed"] = result.seed;
  json["pace"] = options.as_possible ? "as possible" : "recorded";
  json["end_ps"] = result.end.ps;
  json["recorded_end_ps"] = result.recorded_end.ps;
  json["flows"] = Json::array();
  for (std::size_t host = 0; host < result.recorded.hosts.size(); ++host)
    if (const auto recorded = result.recorded_requests.hosts()[host].posted; recorded != 0)
      json["flows"].push_back(flow_json(result.recorded.hosts[host], result.requests.hosts()[host], recorded));
  auto& system = result.system;
  for (std::size_t i = 0; i < system.adapters(); ++i)
    json["hosts"][system.adapter(i).label()] = block_json(system.counters(i), result.end);
  for (std::size_t i = 0; i < system.switches(); ++i)
    json["switches"][system.config().topology.switches[i]] = block_json(system.switch_counters(i), result.end);
  json["faults"] = faults_json(system.config());
  json["parameters"] = parameters_json(system.config());
  return json;
}

}  // namespace rnicsim::sim::rerun

// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/bench_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/adapter.h"
#include "sim/bench/results/bottleneck.h"
#include "sim/bench/results/randomness.h"
#include "sim/bench/results/switch_ports.h"
#include "sim/config/config.h"
#include "sim/config/data_files.h"
#include "sim/config/profiles/profile_notes.h"
#include "sim/results/counter_results.h"
#include "sim/results/file_json.h"
#include "sim/results/results_json.h"
#include "sim/switch_histograms.h"

namespace rnicsim::sim::bench {
namespace {

void add_raw_parameters(const RawOptions& raw, Json& json) {
  json["flows"] = raw.flows;
  json["checksums"] = raw.checksums;
  if (raw.tso_mss) json["tso_mss"] = *raw.tso_mss;
  json["rx_queues"] = raw.rx_queues;
  json["rss_key"] = raw.key_text();
  for (const auto field : raw.rss_fields) json["rss_fields"].push_back(to_string(field));
}

Json address_json(const Flow& flow) {
  Json json;
  if (flow.stride.bytes != 0) json["stride"] = to_string(flow.stride);
  if (flow.slots) json["slots"] = *flow.slots;
  if (flow.zipf > 0) json["zipf"] = flow.zipf;
  return json.is_null() ? Json(to_string(flow.address)) : json;
}

Json flow_parameters(const Flow& flow) {
  Json json;
  json["from"] = flow.from;
  json["to"] = flow.to;
  json["transport"] = to_string(flow.transport);
  const auto steps = [&](const Sequence& of) {
    Json list = Json::array();
    for (std::uint32_t i = of.first; i < of.first + of.count; ++i)
      list.push_back({{"op", to_string(flow.mix[i].op)}, {"size", to_string(flow.mix[i].size)}});
    return list;
  };
  if (flow.sequences.size() == 1) json["sequence"] = steps(flow.sequences.front());
  for (const auto& of : flow.sequences.size() > 1 ? flow.sequences : std::vector<Sequence>())
    json["mix"].push_back({{"sequence", steps(of)}, {"weight", of.weight}});
  for (const auto& op : flow.mix)
    if (!flow.sequence)
      json["mix"].push_back({{"op", to_string(op.op)}, {"weight", op.weight}, {"size", to_string(op.size)}});
  json["threads"] = flow.threads;
  json["qps"] = flow.qps;
  json["connect"] = to_string(flow.connect);
  json["window"] = flow.window;
  json["window_per"] = to_string(flow.window_per);
  json["pick"] = to_string(flow.pick);
  json["batch"] = flow.batch;
  json["inline"] = to_string(flow.inline_most);
  json["signal_every"] = flow.signal_every;
  json["signal_per"] = to_string(flow.signal_per);
  json["both_ways"] = flow.both_ways;
  json["srq"] = flow.srq;
  json["odp"] = flow.odp;
  json["doorbell"] = to_string(flow.doorbell);
  json["uars"] = to_string(flow.uars);
  if (flow.takes_receives()) json["recv_depth"] = flow.receives();
  json["recv_inline"] = to_string(flow.recv_inline);
  json["ping_pong"] = flow.ping_pong;
  json["mrs"] = flow.mrs;
  if (flow.mr_size) json["mr_size"] = to_string(*flow.mr_size);
  json["page"] = to_string(flow.page);
  json["address"] = address_json(flow);
  json["share"] = flow.share;
  json["mtu"] = *flow.mtu;
  json["max_rd_atomic"] = *flow.max_rd_atomic;
  json["dscp"] = flow.dscp;
  json["sl"] = flow.sl;
  json["rnr_timer"] = flow.rnr_timer;
  json["timeout"] = flow.timeout;
  json["retry"] = flow.retry;
  if (flow.transport == Transport::raw) add_raw_parameters(flow.raw, json);
  if (flow.pace && flow.pace->operations_per_second > 0) json["pace"] = flow.pace->operations_per_second;
  if (flow.pace && flow.pace->operations_per_second <= 0) json["pace"] = to_string(flow.pace->rate);
  json["start"] = to_string(flow.start);
  if (flow.stop) json["stop"] = to_string(*flow.stop);
  return json;
}

// Without samples the times are null.
Json latency_json(const Histogram& latency) {
  const auto known = [&](Duration value) { return latency.count() == 0 ? Json() : Json(value.ps); };
  return {{"samples", latency.count()},
          {"min", known(latency.least())},
          {"p50", known(latency.percentile(0.5))},
          {"p99", known(latency.percentile(0.99))},
          {"p99.9", known(latency.percentile(0.999))},
          {"max", known(latency.most())},
          {"mean", known(latency.mean())}};
}

Json frames_json(const FramesResult& frames, Duration interval) {
  Json json{{"frames", frames.received},
            {"rate_per_s", per_second(frames.received, interval)},
            {"lost", {{"no_receive", frames.no_receive}, {"no_flow", frames.no_flow}}},
            {"queues", Json::array()}};
  for (const auto& queue : frames.queues)
    json["queues"].push_back({{"host", queue.host}, {"queue", queue.number}, {"frames", queue.frames}});
  return json;
}

Json fairness_json(const Fairness& fairness) {
  return {{"senders", fairness.senders},       {"jain", fairness.jain},          {"least_per_s", fairness.least_per_s},
          {"most_per_s", fairness.most_per_s}, {"silent", fairness.silent},      {"halted", fairness.halted},
          {"await_ack", fairness.await_ack},   {"await_rnr", fairness.await_rnr}};
}

Json rate_interval(const Steadiness& steadiness, double rate) {
  if (!steadiness.reach) return {};
  return {{"low", rate * (1 - *steadiness.reach)}, {"high", rate * (1 + *steadiness.reach)}};
}

// True if all flows are steady, false if one is not, null if it is unknown for one.
Json all_steady(const BenchResult& result) {
  bool known = true;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    const auto steady = steadiness_of(result, i).steady;
    if (steady == false) return false;
    known = known && steady;
  }
  return known ? Json(true) : Json();
}

Json measure_json(const BenchResult& result) {
  const auto& measure = result.workload.measure;
  Json json{{"warmup", to_string(result.runner.warmup())}};
  if (measure.is_given() && measure.operations)
    json["operations"] = *measure.operations;
  else
    json["duration"] = to_string(result.runner.interval());
  json["chosen"] = Json::array();
  if (!measure.warmup) json["chosen"].push_back("warmup");
  if (!measure.is_given()) json["chosen"].push_back("duration");
  return json;
}

Json flow_json(const BenchResult& of, std::size_t number) {
  const Flow& flow = of.workload.flows[number];
  const FlowState& state = of.runner.flows()[number];
  const auto result = flow_result(state, of.runner.after().at);
  const auto steadiness = steadiness_of(of, number);
  Json json;
  json["operations"] = result.operations;
  json["interval_ps"] = result.interval.ps;
  json["rate_per_s"] = result.operations_per_second();
  json["rate_interval"] = rate_interval(steadiness, result.operations_per_second());
  json["steady"] = steadiness.steady ? Json(*steadiness.steady) : Json();
  json["truncation"] = steadiness.truncation;
  json["drift"] = steadiness.drift;
  json["goodput_bits_per_s"] = result.bits_per_second();
  json["fairness"] = fairness_json(fairness_of(of, number));
  if (of.runner.stock(number) != 0) json["backlog_grows"] = steadiness.fills;
  json["latency_ps"] = latency_json(state.latency);
  if (flow.mix.size() > 1)
    for (std::size_t i = 0; i < flow.mix.size(); ++i)
      json[flow.sequence ? "sequence" : "mix"].push_back(
          {{"op", to_string(flow.mix[i].op)}, {"size", to_string(flow.mix[i].size)}, {"operations", state.of_mix[i]}});
  json["posted"] = state.posted;
  if (flow.transport == Transport::raw) json["received"] = frames_json(frames_result(of, number), result.interval);
  json["parameters"] = flow_parameters(flow);
  return json;
}

Json switch_json(const BenchResult& result, std::size_t box) {
  auto counters = switch_counters(result, box);
  for (auto& counter : port_results(result, box)) counters.push_back(std::move(counter));
  auto json = counters_json(counters);
  if (const auto histograms = port_histograms(result, box); !histograms.empty())
    json["histograms"] = histograms_json(result.system.config().topology.port_names(box), histograms);
  return json;
}

Json agents_json(const BenchResult& result) {
  Json json = Json::array();
  for (std::size_t i = 0; i < result.plan.agents.size(); ++i) {
    const auto& agent = result.plan.agents[i];
    if (const auto share = result.runner.busy_share(i))
      json.push_back({{"flow", agent.flow},
                      {"host", result.system.adapter(agent.host).label()},
                      {"thread", agent.thread},
                      {"end", end_name(agent.sends)},
                      {"cpu_busy_share", *share}});
  }
  return json;
}

}  // namespace

Json results_json(const BenchResult& result) {
  const auto& workload = result.workload;
  Json json = results_of_command("bench");
  json["workload"] = file_json(workload.file);
  json["nic"] = file_json(find_data(DataKind::nic, workload.nic));
  if (is_extrapolated(workload.nic)) json["extrapolated"] = true;
  json["host"] = result.system.config().host_profile;
  json["topology"] = workload.topology;
  json["seed"] = workload.seed;
  json["random"] = random_parts(result);
  json["measure"] = measure_json(result);
  json["steady"] = all_steady(result);
  json["from_ps"] = result.runner.before().at.ps;
  json["interval_ps"] = result.runner.interval().ps;
  for (std::size_t i = 0; i < workload.flows.size(); ++i) json["flows"].push_back(flow_json(result, i));
  json["agents"] = agents_json(result);
  for (std::size_t i = 0; i < result.system.adapters(); ++i)
    json["hosts"][result.system.adapter(i).label()] = counters_json(host_counters(result, i));
  for (std::size_t i = 0; i < result.system.switches(); ++i)
    json["switches"][result.system.config().topology.switches[i]] = switch_json(result, i);
  json["faults"] = faults_json(result.system.config());
  const auto uses = resource_uses(result);
  json["utilization"] = Json::array();
  for (const auto& use : uses) json["utilization"].push_back(use_json(use));
  const auto limit = limit_of(result, uses);
  json["limit"] = use_json(limit);
  json["limit"]["text"] = limit_text(limit);
  json["pauses"] = pauses_json(pauses_of(result));
  if (result.waterfall) json["waterfall"] = waterfall_json(result.waterfall->summary());
  json["parameters"] = parameters_json(result.system.config());
  const auto speed = speed_of(result.runner);
  json["simulator"] = {{"cpu_s", speed.cpu_seconds},
                       {"wqes_per_cpu_s", speed.wqes / speed.cpu_seconds},
                       {"packets_per_cpu_s", speed.packets / speed.cpu_seconds},
                       {"events_per_wqe", speed.events / std::max(speed.wqes, 1.0)},
                       {"peak_memory_kib", speed.peak_kib}};
  return json;
}

}  // namespace rnicsim::sim::bench

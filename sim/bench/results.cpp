#include "sim/bench/results.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/bench/bottleneck.h"
#include "sim/bench/judgement.h"
#include "sim/bench/randomness.h"
#include "sim/bench/switch_ports.h"
#include "sim/config/config.h"
#include "sim/config/data_files.h"
#include "sim/config/profile_notes.h"
#include "sim/counter_results.h"
#include "sim/file_json.h"
#include "sim/results_json.h"
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

// Of no operation none is known.
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
  return {{"senders", fairness.senders},         {"jain", fairness.jain},
          {"least_per_s", fairness.least_per_s}, {"most_per_s", fairness.most_per_s},
          {"silent", fairness.silent},           {"halted", fairness.halted},
          {"await_ack", fairness.await_ack},     {"await_rnr", fairness.await_rnr}};
}

Json rate_interval(const Steadiness& steadiness, double rate) {
  if (!steadiness.reach) return {};
  return {{"low", rate * (1 - *steadiness.reach)}, {"high", rate * (1 + *steadiness.reach)}};
}

// Of all flows: false if one is not, null if it is not known of one.
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

const char* end_name(bool sends) { return sends ? "from" : "to"; }

double per_second(std::uint64_t count, Duration interval) {
  return interval.ps <= 0 ? 0 : static_cast<double>(count) * 1e12 / static_cast<double>(interval.ps);
}

std::vector<CounterResult> host_counters(const BenchResult& result, std::size_t host) {
  return counter_results(result.runner.before().hosts[host], result.runner.after().hosts[host],
                         result.runner.interval());
}

std::vector<CounterResult> switch_counters(const BenchResult& result, std::size_t box) {
  return counter_results(result.runner.before().switches[box], result.runner.after().switches[box],
                         result.runner.interval());
}

Speed speed_of(const Runner& runner) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto& before = runner.before();
  const auto& after = runner.after();
  return {std::max(after.cpu_seconds - before.cpu_seconds, 1e-9), static_cast<double>(after.posted - before.posted),
          static_cast<double>(after.packets - before.packets), static_cast<double>(after.events - before.events),
          usage.ru_maxrss};
}

FramesResult frames_result(const BenchResult& result, std::size_t flow) {
  FramesResult frames;
  std::set<std::uint32_t> hosts;
  for (const auto& agent : result.plan.agents) {
    if (agent.flow != flow || agent.sends) continue;
    const auto count = result.runner.flows()[flow].received[frames.queues.size()];
    frames.queues.push_back({result.system.adapter(agent.host).label(), agent.thread, count});
    frames.received += count;
    hosts.insert(agent.host);
  }
  for (const auto host : hosts)
    for (const auto& counter : host_counters(result, host)) {
      if (counter.path == "nic.engine.out_of_buffer") frames.no_receive += static_cast<std::uint64_t>(counter.value);
      if (counter.path == "nic.raw.no_flow") frames.no_flow += static_cast<std::uint64_t>(counter.value);
    }
  return frames;
}

FlowResult flow_result(const FlowState& flow, Duration run_end) {
  const auto until = std::min(flow.measured_until, run_end);
  return {until - flow.measured_from, flow.operations, flow.bytes};
}

Fairness fairness_of(const BenchResult& result, std::size_t flow) {
  const auto& state = result.runner.flows()[flow];
  const auto until = std::min(state.measured_until, result.runner.after().at);
  Fairness fairness{.senders = state.of_senders.size()};
  double sum = 0, squares = 0;
  std::uint64_t least = ~0ull, most = 0;
  for (const auto& sender : sender_counts(state.of_senders, state.work, until)) {
    const auto all = sender.all();
    sum += static_cast<double>(all);
    squares += static_cast<double>(all) * static_cast<double>(all);
    least = std::min(least, all);
    most = std::max(most, all);
    if (!sender.has_work || (sender.first != 0 && sender.second != 0)) continue;
    ++(all == 0 ? fairness.silent : fairness.halted);
    fairness.await_ack += sender.awaits_ack;
    fairness.await_rnr += !sender.awaits_ack && sender.awaits_rnr;
  }
  const auto interval = until - state.measured_from;
  fairness.least_per_s = per_second(least, interval);
  fairness.most_per_s = per_second(most, interval);
  if (squares > 0) fairness.jain = sum * sum / (static_cast<double>(fairness.senders) * squares);
  return fairness;
}

Steadiness steadiness_of(const BenchResult& result, std::size_t flow) {
  const auto& state = result.runner.flows()[flow];
  const auto counts = state.batches.until(std::min(state.measured_until, result.runner.after().at));
  auto steadiness = steadiness_of(counts, level_of_trend(result.workload.flows.size()));
  const auto& runner = result.runner;
  const auto senders = sender_counts(state.of_senders, state.work, std::min(state.measured_until, runner.after().at));
  steadiness.halted = halted_of(senders);
  if (const auto* middle = runner.middle(); middle && runner.stock(flow) != 0) {
    const auto backlog =
        backlog_halves(runner.before().at, runner.before().backlogs[flow], middle->at, middle->backlogs[flow],
                       runner.after().at, runner.after().backlogs[flow]);
    steadiness.fills = fills_up(backlog.early, backlog.late, runner.stock(flow));
  }
  if (steadiness.halted != 0 || steadiness.fills) steadiness.steady = false;
  return steadiness;
}

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
  for (std::size_t i = 0; i < workload.flows.size(); ++i)
    json["flows"].push_back(flow_json(result, i));
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

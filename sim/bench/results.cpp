#include "sim/bench/results.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "sim/bench/bottleneck.h"
#include "sim/config/config.h"
#include "sim/config/data_files.h"
#include "sim/config/profile_notes.h"
#include "sim/counter_results.h"
#include "sim/results_json.h"

namespace rnicsim::sim::bench {
namespace {

using Json = nlohmann::ordered_json;

// "12.3 M", "4.56 k", "789"
std::string scaled(double value) {
  for (const auto& [scale, prefix] :
       {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e3, "k")})
    if (value >= scale) return fmt::format("{:.4g} {}", value / scale, prefix);
  return fmt::format("{:.4g} ", value);
}

std::string shown_time(Duration value) {
  for (const auto& [scale, unit] :
       {std::pair(1e12, "s"), std::pair(1e9, "ms"), std::pair(1e6, "us"), std::pair(1e3, "ns")})
    if (static_cast<double>(value.ps) >= scale)
      return fmt::format("{:.4g} {}", static_cast<double>(value.ps) / scale, unit);
  return fmt::format("{} ps", value.ps);
}

std::string joined(const std::vector<std::string>& hosts) {
  return hosts.size() == 1 ? hosts.front() : fmt::format("{}..{}", hosts.front(), hosts.back());
}

std::string ends_text(const Flow& flow) {
  return flow.to.empty() ? joined(flow.from) : fmt::format("{}->{}", joined(flow.from), joined(flow.to));
}

std::string mix_text(const Flow& flow) {
  std::string text;
  const char* between = flow.sequence ? ", " : " + ";
  for (const auto& op : flow.mix)
    text += fmt::format("{}{} {}", text.empty() ? "" : between, to_string(op.op), to_string(op.size));
  return text;
}

std::string crc32_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return fmt::format("{:08x}", crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

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
  for (const auto& op : flow.mix)
    if (flow.sequence)
      json["sequence"].push_back({{"op", to_string(op.op)}, {"size", to_string(op.size)}});
    else
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

double per_second(std::uint64_t count, Duration interval) {
  return interval.ps <= 0 ? 0 : static_cast<double>(count) * 1e12 / static_cast<double>(interval.ps);
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

std::vector<CounterResult> host_counters(const BenchResult& result, std::size_t host) {
  return counter_results(result.runner.before().hosts[host], result.runner.after().hosts[host],
                         result.runner.interval());
}

struct Speed {
  double cpu_seconds, wqes, packets, events;
  long peak_kib;
};
Speed speed_of(const Runner& runner) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto& before = runner.before();
  const auto& after = runner.after();
  return {std::max(after.cpu_seconds - before.cpu_seconds, 1e-9), static_cast<double>(after.posted - before.posted),
          static_cast<double>(after.packets - before.packets), static_cast<double>(after.events - before.events),
          usage.ru_maxrss};
}

std::string unsteady_text(const BenchResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    const auto steadiness = steadiness_of(result, i);
    if (steadiness.steady != false) continue;
    text += fmt::format("flow {} is not steady: its second half's rate is {:+.1f} % of the first's, and MSER-5 would "
                        "leave out the first {:.0f} %\n",
                        i, 100 * steadiness.drift, 100 * steadiness.truncation);
  }
  return text;
}

std::string flows_table(const BenchResult& result) {
  constexpr auto kRow = "{:<5} {:<26} {:>11} {:>12} {:>8} {:>12}  {:>9} {:>9} {:>9} {:>9} {:>9}\n";
  std::string text = fmt::format(kRow, "flow", "", "operations", "rate", "95 %", "goodput", "min", "p50", "p99",
                                 "p99.9", "max");
  for (std::size_t i = 0; i < result.runner.flows().size(); ++i) {
    const auto& flow = result.workload.flows[i];
    const auto& state = result.runner.flows()[i];
    const auto measured = flow_result(state, result.runner.after().at);
    const auto& latency = state.latency;
    const auto known = [&](Duration value) { return latency.count() == 0 ? "-" : shown_time(value); };
    const auto reach = steadiness_of(result, i).reach;
    text += fmt::format(kRow, i, fmt::format("{} {}", ends_text(flow), mix_text(flow)),
                        measured.operations, scaled(measured.operations_per_second()) + "op/s",
                        reach ? fmt::format("+-{:.2g} %", 100 * *reach) : "-",
                        scaled(measured.bits_per_second()) + "b/s", known(latency.least()),
                        known(latency.percentile(0.5)), known(latency.percentile(0.99)),
                        known(latency.percentile(0.999)), known(latency.most()));
  }
  return text + unsteady_text(result);
}

// What became of raw packets, and which queue got how many.
std::string frames_table(const BenchResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    if (result.workload.flows[i].transport != Transport::raw) continue;
    const auto frames = frames_result(result, i);
    const auto interval = flow_result(result.runner.flows()[i], result.runner.after().at).interval;
    text += fmt::format("flow {}: {} frames received, {}frames/s; lost without a receive {}, without a flow {}\n", i,
                        frames.received, scaled(per_second(frames.received, interval)), frames.no_receive,
                        frames.no_flow);
    for (const auto& queue : frames.queues)
      text += fmt::format("  {} queue {:<3} {:>11} frames\n", queue.host, queue.number, queue.frames);
  }
  return text.empty() ? text : text + '\n';
}

const char* end_name(bool sends) { return sends ? "from" : "to"; }

// How busy the agents' CPUs were, by flow and end.
std::string agents_table(const BenchResult& result) {
  std::map<std::pair<std::uint32_t, bool>, std::vector<double>> shares;
  for (std::size_t i = 0; i < result.plan.agents.size(); ++i) {
    const auto& agent = result.plan.agents[i];
    if (const auto share = result.runner.busy_share(i)) shares[{agent.flow, !agent.sends}].push_back(*share);
  }
  std::string text =
      fmt::format("{:<5} {:<5} {:>6} {:>12} {:>9} {:>9}\n", "flow", "end", "agents", "CPU busy", "least", "most");
  for (const auto& [key, of] : shares) {
    const double mean = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    text += fmt::format("{:<5} {:<5} {:>6} {:>12.4f} {:>9.4f} {:>9.4f}  of 1\n", key.first, end_name(!key.second),
                        of.size(), mean, std::ranges::min(of), std::ranges::max(of));
  }
  return text;
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

// A column a host, a row a counter; only what counted something.
std::string counters_table(const BenchResult& result) {
  std::vector<std::vector<CounterResult>> columns;
  for (std::size_t host = 0; host < result.system.adapters(); ++host) columns.push_back(host_counters(result, host));
  std::vector<std::size_t> rows;
  std::size_t width = 0;
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    if (std::ranges::none_of(columns, [&](const auto& column) { return column[row].tells(); })) continue;
    rows.push_back(row);
    width = std::max(width, columns.front()[row].path.size());
  }
  constexpr std::size_t kMostColumns = 8;
  const auto shown_columns = std::min(columns.size(), kMostColumns);
  std::string text = fmt::format("{:<{}}", "", width);
  for (std::size_t i = 0; i < shown_columns; ++i) text += fmt::format(" {:>12}", result.system.adapter(i).label());
  text += shown_columns < columns.size()
              ? fmt::format("  ({} more hosts in the JSON)\n", columns.size() - shown_columns)
              : "\n";
  for (const auto row : rows) {
    const auto& first = columns.front()[row];
    text += fmt::format("{:<{}}", first.path, width);
    for (std::size_t i = 0; i < shown_columns; ++i) {
      const double value = columns[i][row].value;
      text += !columns[i][row].known ? fmt::format(" {:>12}", "-")
              : !first.derived()     ? fmt::format(" {:>12.0f}", value)
              : first.unit == "b/s"  ? fmt::format(" {:>12}", scaled(value))
                                     : fmt::format(" {:>12.4f}", value);
    }
    text += fmt::format("  {}\n", first.unit);
  }
  return text;
}

}  // namespace

Json file_json(const std::filesystem::path& path) {
  return {{"file", path.filename().string()}, {"crc32", crc32_of(path)}};
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

Steadiness steadiness_of(const BenchResult& result, std::size_t flow) {
  const auto& state = result.runner.flows()[flow];
  const auto counts = state.batches.until(std::min(state.measured_until, result.runner.after().at));
  return steadiness_of(counts, level_of_trend(result.workload.flows.size()));
}

std::string results_text(const BenchResult& result) {
  const auto speed = speed_of(result.runner);
  const auto engines = engines_text(result.system.config());
  std::string text =
      fmt::format("{}: {}{}, {}, seed {}; measured for {}, from {} on, after a warm-up of {}{}\n\n",
                  result.workload.file, nic_text(result.workload.nic), engines.empty() ? "" : ", engine " + engines,
                  result.workload.topology, result.workload.seed, shown_time(result.runner.interval()),
                  shown_time(result.runner.before().at), shown_time(result.runner.warmup()),
                  result.workload.measure.warmup ? "" : ", as it was needed");
  text += flows_table(result) + '\n' + frames_table(result) + agents_table(result) + '\n';
  text += counters_table(result) + '\n';
  for (std::size_t i = 0; i < result.system.switches(); ++i)
    for (const auto& counter : counter_results(result.runner.before().switches[i], result.runner.after().switches[i],
                                               result.runner.interval()))
      text += fmt::format("{}: {} {} {}\n", result.system.config().topology.switches[i], counter.path,
                          static_cast<std::uint64_t>(counter.value), counter.unit);
  text += fmt::format("limited by: {}\n", limit_text(limit_of(result, resource_uses(result))));
  if (result.waterfall) text += waterfall_text(result.waterfall->summary()) + '\n';
  text += fmt::format("simulator: {}WQE/s and {}packets/s of CPU time, {:.1f} events a WQE, {:.2f} s, peak {} MiB\n",
                      scaled(speed.wqes / speed.cpu_seconds), scaled(speed.packets / speed.cpu_seconds),
                      speed.events / std::max(speed.wqes, 1.0), speed.cpu_seconds, speed.peak_kib >> 10);
  return text;
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
    json["switches"][result.system.config().topology.switches[i]] = counters_json(counter_results(
        result.runner.before().switches[i], result.runner.after().switches[i], result.runner.interval()));
  json["faults"] = faults_json(result.system.config());
  const auto uses = resource_uses(result);
  json["utilization"] = Json::array();
  for (const auto& use : uses) json["utilization"].push_back(use_json(use));
  const auto limit = limit_of(result, uses);
  json["limit"] = use_json(limit);
  json["limit"]["text"] = limit_text(limit);
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

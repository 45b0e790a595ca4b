// SPDX-License-Identifier: Apache-2.0
// The results of a run as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/bench/number_text.h"
#include "sim/bench/results/bottleneck.h"
#include "sim/bench/results/counter_tables.h"
#include "sim/bench/results/randomness.h"
#include "sim/bench/results/results.h"
#include "sim/bench/results/switch_ports.h"
#include "sim/config/config.h"
#include "sim/config/profiles/profile_notes.h"

namespace rnicsim::sim::bench {
namespace {

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

std::string timeout_text(const Flow& flow) {
  if (flow.timeout == 0) return "none";
  return shown_time(Duration{4'096'000} * (std::int64_t{1} << flow.timeout));
}

std::string reason_text(const Steadiness& steadiness) {
  if (steadiness.halted != 0)
    return fmt::format("{} senders completed nothing in one half or in all of the measured time", steadiness.halted);
  if (steadiness.fills) return "the receivers are slower than the senders, and posted receives are left";
  return fmt::format(
      "the rate of the second half differs by {:+.1f} % from the first half, and MSER-5 would leave out the first "
      "{:.0f} %",
      100 * steadiness.drift, 100 * steadiness.truncation);
}

std::string unsteady_text(const BenchResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    const auto steadiness = steadiness_of(result, i);
    if (steadiness.steady != false) continue;
    text += fmt::format("flow {} is not steady: {}\n", i, reason_text(steadiness));
  }
  return text;
}

// Distribution of the work among senders, and the senders without completions.
std::string senders_text(const BenchResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    const auto fairness = fairness_of(result, i);
    if (fairness.senders < 2) continue;
    text += fmt::format("flow {}: {} senders, from {}op/s to {}op/s each, Jain's index {:.3f}\n", i, fairness.senders,
                        scaled(fairness.least_per_s), scaled(fairness.most_per_s), fairness.jain);
    if (fairness.silent != 0)
      text += fmt::format("flow {}: {} of {} senders completed nothing in the measured time\n", i, fairness.silent,
                          fairness.senders);
    if (fairness.halted != 0)
      text += fmt::format("flow {}: {} of {} senders completed nothing in one half of the measured time\n", i,
                          fairness.halted, fairness.senders);
    if (fairness.await_ack != 0)
      text += fmt::format("flow {}: {} of these wait for answers or for their ACK timeouts ({})\n", i,
                          fairness.await_ack, timeout_text(result.workload.flows[i]));
    if (fairness.await_rnr != 0)
      text += fmt::format("flow {}: {} of these wait because their receivers were not ready\n", i, fairness.await_rnr);
  }
  return text;
}

std::string flows_table(const BenchResult& result) {
  constexpr auto kRow = "{:<5} {:<26} {:>11} {:>12} {:>8} {:>12}  {:>9} {:>9} {:>9} {:>9} {:>9}\n";
  std::string text =
      fmt::format(kRow, "flow", "", "operations", "rate", "95 %", "goodput", "min", "p50", "p99", "p99.9", "max");
  for (std::size_t i = 0; i < result.runner.flows().size(); ++i) {
    const auto& flow = result.workload.flows[i];
    const auto& state = result.runner.flows()[i];
    const auto measured = flow_result(state, result.runner.after().at);
    const auto& latency = state.latency;
    const auto known = [&](Duration value) { return latency.count() == 0 ? "-" : shown_time(value); };
    const auto reach = steadiness_of(result, i).reach;
    text += fmt::format(
        kRow, i, fmt::format("{} {}", ends_text(flow), mix_text(flow)), measured.operations,
        scaled(measured.operations_per_second()) + "op/s", reach ? fmt::format("+-{:.2g} %", 100 * *reach) : "-",
        scaled(measured.bits_per_second()) + "b/s", known(latency.least()), known(latency.percentile(0.5)),
        known(latency.percentile(0.99)), known(latency.percentile(0.999)), known(latency.most()));
  }
  return text + senders_text(result) + unsteady_text(result);
}

// Raw packets: frames received and lost, and frames by queue.
std::string frames_table(const BenchResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.workload.flows.size(); ++i) {
    if (result.workload.flows[i].transport != Transport::raw) continue;
    const auto frames = frames_result(result, i);
    const auto interval = flow_result(result.runner.flows()[i], result.runner.after().at).interval;
    text +=
        fmt::format("flow {}: {} frames received, {}frames/s; lost without a receive {}, without a flow {}\n", i,
                    frames.received, scaled(per_second(frames.received, interval)), frames.no_receive, frames.no_flow);
    for (const auto& queue : frames.queues)
      text += fmt::format("  {} queue {:<3} {:>11} frames\n", queue.host, queue.number, queue.frames);
  }
  return text.empty() ? text : text + '\n';
}

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

}  // namespace

std::string results_text(const BenchResult& result) {
  const auto speed = speed_of(result.runner);
  const auto engines = engines_text(result.system.config());
  std::string text = fmt::format(
      "{}: {}{}, {}, seed {}{}; measured for {}, from {} on, after a warm-up of {}{}\n\n", result.workload.file,
      nic_text(result.workload.nic), engines.empty() ? "" : ", engine " + engines, result.workload.topology,
      result.workload.seed, random_parts(result).empty() ? " (nothing is random)" : "",
      shown_time(result.runner.interval()), shown_time(result.runner.before().at), shown_time(result.runner.warmup()),
      result.workload.measure.warmup ? "" : ", as it was needed");
  text += flows_table(result) + '\n' + frames_table(result) + agents_table(result) + '\n';
  text += hosts_table(result) + '\n';
  if (const auto switches = switches_table(result); !switches.empty()) text += switches + '\n';
  text += pauses_text(pauses_of(result));
  text += fmt::format("limited by: {}\n", limit_text(limit_of(result, resource_uses(result))));
  if (result.waterfall) text += waterfall_text(result.waterfall->summary()) + '\n';
  text += fmt::format("simulator: {}WQE/s and {}packets/s of CPU time, {:.1f} events a WQE, {:.2f} s, peak {} MiB\n",
                      scaled(speed.wqes / speed.cpu_seconds), scaled(speed.packets / speed.cpu_seconds),
                      speed.events / std::max(speed.wqes, 1.0), speed.cpu_seconds, speed.peak_kib >> 10);
  return text;
}

}  // namespace rnicsim::sim::bench

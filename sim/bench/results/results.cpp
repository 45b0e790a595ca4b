// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/results.h"

#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/bench/results/assessment.h"
#include "sim/results/counter_results.h"

namespace rnicsim::sim::bench {

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
    const auto backlog = backlog_halves(runner.before().at, runner.before().backlogs[flow], middle->at,
                                        middle->backlogs[flow], runner.after().at, runner.after().backlogs[flow]);
    steadiness.fills = fills_up(backlog.early, backlog.late, runner.stock(flow));
  }
  if (steadiness.halted != 0 || steadiness.fills) steadiness.steady = false;
  return steadiness;
}

}  // namespace rnicsim::sim::bench

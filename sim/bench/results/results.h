// SPDX-License-Identifier: Apache-2.0
// Results of a run, and their tables for people (JSON: bench_json.h).
#pragma once

#include <string>
#include <vector>

#include "sim/bench/results/steadiness.h"
#include "sim/bench/runner.h"
#include "sim/results/counter_results.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim::bench {

struct FlowResult {
  Duration interval{};
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  double operations_per_second() const { return per_second(static_cast<double>(operations)); }
  double bits_per_second() const { return per_second(8.0 * static_cast<double>(bytes)); }

 private:
  double per_second(double amount) const {
    return interval.ps <= 0 ? 0 : amount * 1e12 / static_cast<double>(interval.ps);
  }
};

struct BenchResult {
  const Workload& workload;
  const Plan& plan;
  const Runner& runner;
  const System& system;
  const Waterfall* waterfall = nullptr;  // nullptr: not requested
  bool all_counters = false;             // show the counters of each host and switch, however many there are
};

// The cost of the simulation itself in the measured interval.
struct Speed {
  double cpu_seconds, wqes, packets, events;
  long peak_kib;
};

// Frames of raw packets in the measured interval.
struct FramesResult {
  struct Queue {
    std::string host;
    std::uint32_t number;
    std::uint64_t frames;
  };
  std::vector<Queue> queues;
  std::uint64_t received = 0;
  // Frames lost at the receiving hosts, from any sender.
  std::uint64_t no_receive = 0;
  std::uint64_t no_flow = 0;
};

const char* end_name(bool sends);  // end of the flow at which the agent is
double per_second(std::uint64_t count, Duration interval);
std::vector<CounterResult> host_counters(const BenchResult& result, std::size_t host);
std::vector<CounterResult> switch_counters(const BenchResult& result, std::size_t box);  // sum of all ports
Speed speed_of(const Runner& runner);
// Distribution of a flow's work among its senders.
struct Fairness {
  std::size_t senders = 0;
  double least_per_s = 0, most_per_s = 0;
  double jain = 1;                           // Jain's index: 1 for equal shares; 1 / senders if one sender did all
  std::size_t silent = 0;                    // senders that have work to do and completed nothing
  std::size_t halted = 0;                    // senders that have work to do and completed nothing in one of the halves
  std::size_t await_ack = 0, await_rnr = 0;  // silent and halted senders that wait for an ACK, or after an RNR NAK
};
Fairness fairness_of(const BenchResult& result, std::size_t flow);
FramesResult frames_result(const BenchResult& result, std::size_t flow);
FlowResult flow_result(const FlowState& flow, Duration run_end);
// Steadiness of a flow's rate, in the flow's part of the interval.
Steadiness steadiness_of(const BenchResult& result, std::size_t flow);
std::string results_text(const BenchResult& result);

}  // namespace rnicsim::sim::bench

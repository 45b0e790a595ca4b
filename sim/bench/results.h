// What a run measured: tables for people, JSON for machines.
#pragma once

#include <string>
#include <vector>

#include "sim/bench/runner.h"
#include "sim/bench/steadiness.h"
#include "sim/counter_results.h"
#include "sim/json.h"
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
  const Waterfall* waterfall = nullptr;  // what nobody asked for is not shown
  bool all_counters = false;             // those of each host and switch, however many there are
};

// The cost of the simulation itself in the measured interval.
struct Speed {
  double cpu_seconds, wqes, packets, events;
  long peak_kib;
};

// Of raw packets, in the measured interval.
struct FramesResult {
  struct Queue {
    std::string host;
    std::uint32_t number;
    std::uint64_t frames;
  };
  std::vector<Queue> queues;
  std::uint64_t received = 0;
  // By the receiving hosts, whoever sent them.
  std::uint64_t no_receive = 0;
  std::uint64_t no_flow = 0;
};

const char* end_name(bool sends);  // the end at which an agent is: "from", "to"
double per_second(std::uint64_t count, Duration interval);
std::vector<CounterResult> host_counters(const BenchResult& result, std::size_t host);
std::vector<CounterResult> switch_counters(const BenchResult& result, std::size_t box);  // of all ports together
Speed speed_of(const Runner& runner);
// How a flow's work was shared among its senders.
struct Fairness {
  std::size_t senders = 0;
  double least_per_s = 0, most_per_s = 0;
  double jain = 1;           // Jain's index: 1, all did the same; 1 / senders, one did all
  std::size_t silent = 0;    // have work to do, and completed nothing
  std::size_t halted = 0;    // completed something, but nothing in one of the halves
  std::size_t await_ack = 0, await_rnr = 0;  // of the silent and halted senders
};
Fairness fairness_of(const BenchResult& result, std::size_t flow);
FramesResult frames_result(const BenchResult& result, std::size_t flow);
FlowResult flow_result(const FlowState& flow, Duration run_end);
// Of a flow's rate, in its part of the interval.
Steadiness steadiness_of(const BenchResult& result, std::size_t flow);
std::string results_text(const BenchResult& result);
// Everything but "simulator" is the same at every run.
Json results_json(const BenchResult& result);

}  // namespace rnicsim::sim::bench

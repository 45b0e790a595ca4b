// What the agents of a run share: when it begins and ends, what each flow has done, what went wrong.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/base/kernel.h"
#include "sim/bench/workload.h"
#include "sim/histogram.h"

namespace rnicsim::sim::bench {

// Simulated times are absolute.
struct FlowState {
  static constexpr Duration kNever{INT64_MAX};

  Duration begin{};          // agents may post
  Duration end = kNever;     // they stop posting
  Duration measured_from{};  // completions count
  Duration measured_until = kNever;
  std::uint64_t wanted = ~0ull;  // operations; the flow stops with the last
  bool stopped = false;

  std::uint32_t senders = 0;    // still running
  std::uint64_t posted = 0;     // ever
  std::uint64_t completed = 0;  // ever
  Duration progress{};          // the last time when it went on, or began to wait

  std::uint64_t operations = 0;  // measured, as all that follows
  std::uint64_t bytes = 0;       // of payload that arrived
  std::vector<std::uint64_t> of_mix;
  std::vector<std::uint64_t> received;  // frames of raw packets that each of the receivers' queues brought
  Histogram latency;
  Duration last{};  // completion
};

class Control {
 public:
  // Of an agent. The first failure stays. The simulation returns to who runs it.
  void fail(std::string why) {
    note(std::move(why));
    pause_run();
  }
  // Of who runs it.
  void note(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    stopping = true;
  }
  const std::string& failure() const { return failure_; }

  // Something that the runner waits for has happened.
  void report() { pause_run(); }

  bool stopping = false;  // every agent ends

 private:
  std::string failure_;
};

}  // namespace rnicsim::sim::bench

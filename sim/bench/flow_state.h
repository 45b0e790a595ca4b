// What the agents of a run share: when it begins and ends, what each flow has done, what went wrong.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "sim/bench/batches.h"
#include "sim/bench/workload.h"
#include "sim/histogram.h"

namespace rnicsim::sim::bench {

// In an interval.
struct Measured {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;  // of payload that arrived
  std::vector<std::uint64_t> of_mix;
  std::vector<std::uint64_t> received;  // frames of raw packets that each of the receivers' queues brought
  Histogram latency;
  Duration last{};  // completion
  Batches batches;  // of operations; of raw packets, of frames that were received
};

// Simulated times are absolute.
struct FlowState : Measured {
  static constexpr Duration kNever{INT64_MAX};

  Duration begin{};          // agents may post
  Duration end = kNever;     // they stop posting
  Duration measured_from{};  // completions count
  Duration measured_until = kNever;
  Duration turn = kNever;        // what comes from then on is counted apart: it may become what is measured
  std::uint64_t wanted = ~0ull;  // operations; the flow stops with the last
  bool stopped = false;

  std::uint32_t senders = 0;    // still running
  std::uint64_t posted = 0;     // ever
  std::uint64_t completed = 0;  // ever
  Duration progress{};          // the last time when it went on, or began to wait

  Measured after_turn;
  std::optional<Batches> observed;  // the same from the beginning on; while the warm-up's end is looked for

  // Where it is counted; nullptr: nowhere. An agent's own time may be ahead of the simulation's.
  Measured* interval_of(Duration at) {
    if (at < measured_from || at >= measured_until) return nullptr;
    return at < turn ? this : &after_turn;
  }
  // True: it was the last that is wanted.
  bool count(Measured& interval, std::size_t mix, Duration at) {
    if (interval.operations == wanted) return false;
    ++interval.of_mix[mix];
    interval.last = at;
    return ++interval.operations == wanted && end_if_done();
  }
  bool end_if_done() {
    if (turn != kNever || operations != wanted) return false;
    measured_until = last;
    return stopped = true;
  }
  // What tells whether the flow is steady.
  void observe(Measured* interval, Duration at, std::uint64_t number) {
    if (observed) observed->add(at, number);
    if (interval != nullptr) interval->batches.add(at, number);
  }
  // What came from the turn on is measured now; up to `next` it is.
  void turn_over(Duration next) {
    static_cast<Measured&>(*this) = std::exchange(after_turn, empty(next));
    measured_from = std::exchange(turn, next);
  }
  Measured empty(Duration from) const {
    Measured fresh;
    fresh.of_mix.resize(of_mix.size());
    fresh.received.resize(received.size());
    fresh.batches = Batches(from);
    return fresh;
  }
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

// What the agents of a run share: when it begins and ends, what each flow has done, what went wrong.
#pragma once

#include <algorithm>
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

  static constexpr std::size_t kMostOfSender = 64;
  void begin_batches(Duration from, std::size_t senders) {
    batches = Batches(from);
    of_senders.assign(senders, Batches(from, kMostOfSender));
  }

  Batches batches;  // of operations; of raw packets, of frames that were received
  std::vector<Batches> of_senders;  // of operations, by PlannedAgent::place; fewer and longer batches
};

// The work of one sender since the run began.
struct SenderWork {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  // At the end of the measured interval.
  bool awaits_ack = false;  // a queue pair waits for an answer, or for its ACK timeout
  bool awaits_rnr = false;  // a queue pair was told that the receiver is not ready

  // Adds the part of another process; only the process of the sender's host has one.
  void add(const SenderWork& other) {
    posted += other.posted;
    completed += other.completed;
    awaits_ack = awaits_ack || other.awaits_ack;
    awaits_rnr = awaits_rnr || other.awaits_rnr;
  }
};

// Receives that the device has completed and no thread has polled yet. As long as they become more, the receivers live
// on the stock of receives that they posted before the run.
class Backlog {
 public:
  void add(Duration at, std::int64_t change) {
    advance(at);
    waiting_ += change;
  }
  // Their number, added up over the time until then, in receives x ps.
  double area_until(Duration at) const {
    return area_ + static_cast<double>(waiting_) * static_cast<double>(std::max(at, since_).ps - since_.ps);
  }

 private:
  void advance(Duration at) {
    if (at <= since_) return;  // a thread's own time may be ahead of the simulation's
    area_ = area_until(at);
    since_ = at;
  }

  std::int64_t waiting_ = 0;
  Duration since_{};
  double area_ = 0;
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
  std::vector<SenderWork> work;  // by sender
  Backlog backlog;               // of the flow's receivers

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
  void posted_by(std::uint32_t sender, std::uint64_t number) {
    posted += number;
    work[sender].posted += number;
  }
  void completed_by(std::uint32_t sender, Measured* interval, Duration at, std::uint64_t number) {
    completed += number;
    work[sender].completed += number;
    if (interval != nullptr) interval->of_senders[sender].add(at, number);
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
    fresh.begin_batches(from, work.size());
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

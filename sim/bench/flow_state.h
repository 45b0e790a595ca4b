// SPDX-License-Identifier: Apache-2.0
// State that the agents of a run share: begin and end of the run, progress of each flow, failures.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "sim/bench/results/batches.h"
#include "sim/bench/workload.h"
#include "sim/results/histogram.h"

namespace rnicsim::sim::bench {

// Counts of an interval.
struct Measured {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;  // payload that arrived
  std::vector<std::uint64_t> of_mix;
  std::vector<std::uint64_t> received;  // raw packets: frames by receive queue
  Histogram latency;
  Duration last{};  // time of the last completion

  static constexpr std::size_t kMostOfSender = 64;
  void begin_batches(Duration from, std::size_t senders) {
    batches = Batches(from);
    of_senders.assign(senders, Batches(from, kMostOfSender));
  }

  Batches batches;                  // operations; for raw packets, received frames
  std::vector<Batches> of_senders;  // operations, by PlannedAgent::place; fewer and longer intervals
};

// The work of one sender since the run began.
struct SenderWork {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  // State at the end of the measured interval.
  bool awaits_ack = false;  // a queue pair waits for an answer or for its ACK timeout
  bool awaits_rnr = false;  // a queue pair waits because the receiver was not ready (RNR)

  // Adds the part of another process; only the process of the sender's host has one.
  void add(const SenderWork& other) {
    posted += other.posted;
    completed += other.completed;
    awaits_ack = awaits_ack || other.awaits_ack;
    awaits_rnr = awaits_rnr || other.awaits_rnr;
  }
};

// Receives that the device has completed and no thread has polled yet. While their number grows, the receivers use up
// the stock of receives that they posted before the run.
class Backlog {
 public:
  void add(Duration at, std::int64_t change) {
    advance(at);
    waiting_ += change;
  }
  // Integral of their number over the time until `at`, in receives x ps.
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

// All times are absolute simulated times.
struct FlowState : Measured {
  static constexpr Duration kNever{INT64_MAX};

  Duration begin{};          // agents may post from here on
  Duration end = kNever;     // agents stop posting here
  Duration measured_from{};  // completions count from here on
  Duration measured_until = kNever;
  Duration turn = kNever;        // completions from here on count in after_turn, which may become the measured interval
  std::uint64_t wanted = ~0ull;  // number of operations after which the flow stops
  bool stopped = false;

  std::uint32_t senders = 0;     // senders that are running
  std::uint64_t posted = 0;      // since the run began
  std::uint64_t completed = 0;   // since the run began
  Duration progress{};           // last time at which the flow progressed or began to wait
  std::vector<SenderWork> work;  // by sender
  Backlog backlog;               // backlog of the flow's receivers

  Measured after_turn;
  std::optional<Batches> observed;  // batches from the beginning on, while the end of the warm-up is searched

  // Interval in which a completion at `at` counts; nullptr: none. An agent's own time may be ahead of simulated time.
  Measured* interval_of(Duration at) {
    if (at < measured_from || at >= measured_until) return nullptr;
    return at < turn ? this : &after_turn;
  }
  // True: this was the last operation that is wanted, and the flow has stopped.
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
  // Records the data of the test for steadiness.
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
  // after_turn becomes the measured interval; the next turn is at `next`.
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
  // Called by an agent. The first failure is kept. The simulation stops and returns to the runner.
  void fail(std::string why) {
    note(std::move(why));
    pause_run();
  }
  // Called by the runner.
  void note(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    stopping = true;
  }
  const std::string& failure() const { return failure_; }

  // Called when an event happened that the runner waits for.
  void report() { pause_run(); }

  bool stopping = false;  // all agents end

 private:
  std::string failure_;
};

}  // namespace rnicsim::sim::bench

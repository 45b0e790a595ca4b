// SPDX-License-Identifier: Apache-2.0
// Turns. In simulated time a thread runs only while its slot's turn is ThreadSlot::kProcess. The world, which is all
// the rest of the simulation, stands still meanwhile. A call gives the turn to the simulator, the kernel of the host,
// and returns when the turn comes back. The thread's clock is then the one that the simulator set.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "model/abi/attach.h"
#include "sim/host/shim/session.h"

namespace rnicsim::clock {

// The calling thread's slot if the thread may make calls in simulated time: the simulator knows it, and it has its
// turn.
inline abi::ThreadSlot* simulated_slot() {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr || !simulated()) return nullptr;
  // A signal handler that interrupts a waiting call has no turn: the C library answers its calls.
  return slot->turn.load(std::memory_order_relaxed) == abi::ThreadSlot::kProcess ? slot : nullptr;
}

// Makes a call; returns 0 or errno. Results are in the slot. Due signals are raised before the return: their handlers
// may make calls of their own.
int call(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
// The same in two steps.
int call_without_signals(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
void raise_signals(abi::ThreadSlot& slot);
// True: spin.cpp calls a looking function for a thread that it follows. False again after a signal, because a handler
// of the program may have run.
extern constinit thread_local bool looks_while_followed;
// A call at a cancellation point (pthreads(7)): does not return to a thread that was cancelled before or during the
// wait.
int call_cancellably(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
// Call after a wait at a cancellation point, with its error: does not return to a cancelled thread. True: only a
// cancellation interrupted the wait, and the wait begins again.
bool ended_by_cancellation(int error);
// Ends the wait of a thread that is being cancelled: the C library's own signal for cancellation, which no program can
// use.
inline constexpr int kCancelSignal = 32;
// Sets, once, the function that raises a signal in the calling thread.
void raise_signals_by(void (*raise)(const abi::SignalRecord& signal));
// True: a call that the last signal interrupted begins again (SA_RESTART).
bool restarts_after_signal();
// Gives the turn away for good: the thread or the process ends.
void leave(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
extern constinit thread_local std::uint64_t activity_of_thread;
// Grows with each call and each charge of this thread.
inline std::uint64_t activity() { return activity_of_thread; }
// Counts how often in a row a thread has made the same request, without another call or charge: such a thread waits.
class Repetition {
 public:
  // Number of earlier repetitions. `same`: the request is the same as the last one.
  std::uint64_t before(bool same = true) const { return same && activity_ == activity() ? times_ + 1 : 0; }
  std::uint64_t begin(bool same = true) { return times_ = before(same); }
  void end() { activity_ = activity(); }
  void end_in_success() { activity_ = kNever; }

 private:
  static constexpr std::uint64_t kNever = ~0ull;
  std::uint64_t times_ = 0;
  std::uint64_t activity_ = kNever;
};
// A loop that will give up may repeat this often; after that, time passes in larger steps.
inline constexpr std::uint64_t kMostRepeated = 1000;

// Waits until the simulator gives this thread its turn.
void wait_for_turn();

// Adds a cost, of something else than clock reads, to the thread's clock. Lets the world catch up if the thread is too
// far ahead.
void charge(abi::ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times = 1);
// The same, however far ahead the thread is then.
void charge_ahead(abi::ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times = 1);

// A thread that reads clocks ten thousand times in a row, and reads no memory that others write, waits for a point in
// time. Its reads then cost more.
extern constinit thread_local Repetition clock_reads_of_thread;
inline constexpr std::uint64_t kClockReadStep = 10 * kMostRepeated;
// Other memory that such a loop reads: not known yet, none that others write, or memory that others write.
enum class LooksAt : std::uint8_t { unknown, clocks_only, others };
extern constinit thread_local LooksAt thread_looks_at;
// Follows the thread for some clock reads; the result is thread_looks_at. follow_clock_loops_by() sets, once, the
// function that follows threads.
void follow_clock_loop(abi::ThreadSlot& slot);
void follow_clock_loops_by(void (*follow)(abi::ThreadSlot& slot));
inline std::uint64_t cost_of_clock_read(const abi::ThreadSlot& slot, std::uint64_t reads_before) {
  constexpr std::uint64_t kMostStretched = 16;
  const std::uint64_t cost = session()->header().cost[std::size_t(abi::CpuCost::clock_read)];
  if (reads_before == 0 || slot.only_clocks == 0) return cost;
  const std::uint64_t stretched = 1 + reads_before / kClockReadStep;
  return cost * (stretched < kMostStretched ? stretched : kMostStretched);
}
// The result of follow_clock_loop() is used at a fixed clock read, because the time until the result depends on the
// machine. If there is no result by then, the previous result stays.
inline void count_clock_read(abi::ThreadSlot& slot) {
  constexpr std::uint64_t kAnswerAt = 8;
  const std::uint64_t reads = clock_reads_of_thread.begin();
  if (reads == 0) slot.only_clocks = 0;
  if (reads % kClockReadStep == kClockReadStep - 1) follow_clock_loop(slot);
  const bool counts = reads % kClockReadStep == kAnswerAt && reads > kClockReadStep;
  if (counts && thread_looks_at != LooksAt::unknown) slot.only_clocks = thread_looks_at == LooksAt::clocks_only ? 1 : 0;
}
// Value of the time-stamp counter (rdtsc) at a simulated time: one cycle a nanosecond.
inline std::uint64_t counter_at(std::uint64_t picoseconds) {
  return session()->header().uptime * 1'000'000'000 + picoseconds / 1000;
}
// Charges a clock read. False: not charged, because the world has to catch up first.
inline bool charge_clock_read_ahead(abi::ThreadSlot& slot) {
  const std::uint64_t now = slot.now + cost_of_clock_read(slot, clock_reads_of_thread.before());
  if (now >= slot.run_until) return false;
  count_clock_read(slot);
  ++activity_of_thread;
  slot.now = now;
  clock_reads_of_thread.end();
  return true;
}
// Charges a clock read, and lets the world catch up if it has to.
void charge_clock_read(abi::ThreadSlot& slot);

// In real time: wakes a simulator that sleeps, to serve a slot.
void kick();

// The thread is as far ahead of the world as it may be. It sees in memory what it would see without this call.
inline void catch_up(abi::ThreadSlot& slot) { call(slot, abi::Call::look, {1}); }
// Lets the world reach the thread's clock: all that a kernel's answer depends on must have happened.
inline void sync(abi::ThreadSlot& slot) { call(slot, abi::Call::sync); }

}  // namespace rnicsim::clock

// Turns: with simulated time a thread runs only while its slot's turn is the process's. A call hands the turn to the
// kernel and returns when it comes back; the thread's clock is what the kernel made it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "model/abi/attach.h"
#include "verbs/clock/session.h"

namespace rnicsim::clock {

// The slot of the calling thread when it may make calls in simulated time: known, and in its turn.
inline abi::ThreadSlot* simulated_slot() {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr || !simulated()) return nullptr;
  // A signal handler that interrupts a waiting call has no turn: it gets the C library's own answers.
  return slot->turn.load(std::memory_order_relaxed) == abi::ThreadSlot::kProcess ? slot : nullptr;
}

// Makes a call; returns the error (0 or errno). Results are in the slot. Signals due are raised before it returns:
// their handlers may make calls of their own.
int call(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
// The same in two steps.
int call_without_signals(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
void raise_signals(abi::ThreadSlot& slot);
// The thread is followed (spin.cpp), and makes a call for that; false again when a handler of the program's has run.
extern constinit thread_local bool looks_while_followed;
// At a cancellation point (pthreads(7)): does not return to a thread that was cancelled, before or while it waits.
int call_cancellably(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
// After a wait at such a point, with its error; returns too: whether it ended for nothing, and is to begin again.
bool ended_by_cancellation(int error);
// What ends the wait of a thread that is being cancelled: the C library's own signal for it, which no program can use.
inline constexpr int kCancelSignal = 32;
// How one is raised in the calling thread: whoever knows more of signals says so, once.
void raise_signals_by(void (*raise)(const abi::SignalRecord& signal));
// Whether a call that the last signal interrupted begins again.
bool restarts_after_signal();
// Gives the turn away for good (the thread or process ends).
void leave(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments = {});
extern constinit thread_local std::uint64_t activity_of_thread;
// Grows with every call and every charge of this thread.
inline std::uint64_t activity() { return activity_of_thread; }
// How often a thread has asked for the same thing, one time behind the other, without another call or charge: it waits.
class Repetition {
 public:
  // How often before this time. `same`: as the last time.
  std::uint64_t before(bool same = true) const { return same && activity_ == activity() ? times_ + 1 : 0; }
  std::uint64_t begin(bool same = true) { return times_ = before(same); }
  void end() { activity_ = activity(); }
  void end_in_success() { activity_ = kNever; }

 private:
  static constexpr std::uint64_t kNever = ~0ull;
  std::uint64_t times_ = 0;
  std::uint64_t activity_ = kNever;
};
// So often may be a loop that gives up; from then on time passes in larger steps.
inline constexpr std::uint64_t kMostRepeated = 1000;

// Until the kernel gives this thread its turn.
void wait_for_turn();

// The CPU spends this much, on something else than clocks; lets the world catch up when the thread ran too far ahead of
// it.
void charge(abi::ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times = 1);
// However far ahead the thread is then.
void charge_ahead(abi::ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times = 1);

// A thread that reads clocks by the ten thousand, and looks at nothing that others write, waits for a time to come.
// Each of its reads then takes longer.
extern constinit thread_local Repetition clock_reads_of_thread;
inline constexpr std::uint64_t kClockReadStep = 10 * kMostRepeated;
// What a thread in a loop of clock reads looks at.
enum class LooksAt : std::uint8_t { unknown, clocks_only, others };
extern constinit thread_local LooksAt thread_looks_at;
// Starts to follow the thread for some clock reads. The result goes to thread_looks_at. Whoever can follow threads says
// how, once.
void follow_clock_loop(abi::ThreadSlot& slot);
void follow_clock_loops_by(void (*follow)(abi::ThreadSlot& slot));
inline std::uint64_t cost_of_clock_read(const abi::ThreadSlot& slot, std::uint64_t reads_before) {
  constexpr std::uint64_t kMostStretched = 16;
  const std::uint64_t cost = session()->header().cost[std::size_t(abi::CpuCost::clock_read)];
  if (reads_before == 0 || slot.only_clocks == 0) return cost;
  const std::uint64_t stretched = 1 + reads_before / kClockReadStep;
  return cost * (stretched < kMostStretched ? stretched : kMostStretched);
}
// The result is used at a fixed clock read, because the time of the search depends on the machine. If there is no
// result by then, the previous result stays.
inline void count_clock_read(abi::ThreadSlot& slot) {
  constexpr std::uint64_t kAnswerAt = 8;
  const std::uint64_t reads = clock_reads_of_thread.begin();
  if (reads == 0) slot.only_clocks = 0;
  if (reads % kClockReadStep == kClockReadStep - 1) follow_clock_loop(slot);
  const bool counts = reads % kClockReadStep == kAnswerAt && reads > kClockReadStep;
  if (counts && thread_looks_at != LooksAt::unknown) slot.only_clocks = thread_looks_at == LooksAt::clocks_only ? 1 : 0;
}
// What the counter (rdtsc) shows at that moment: one cycle a nanosecond.
inline std::uint64_t counter_at(std::uint64_t picoseconds) {
  return session()->header().uptime * 1'000'000'000 + picoseconds / 1000;
}
// A read of a clock is charged, unless the world has to catch up then.
inline bool charge_clock_read_ahead(abi::ThreadSlot& slot) {
  const std::uint64_t now = slot.now + cost_of_clock_read(slot, clock_reads_of_thread.before());
  if (now >= slot.run_until) return false;
  count_clock_read(slot);
  ++activity_of_thread;
  slot.now = now;
  clock_reads_of_thread.end();
  return true;
}
// The world catches up if it has to.
void charge_clock_read(abi::ThreadSlot& slot);

// In real time: there is something in a slot for a simulator that may sleep.
void kick();

// The thread is as far ahead of the world as it may be. What it sees in memory is what it would see without this.
inline void catch_up(abi::ThreadSlot& slot) { call(slot, abi::Call::look, {1}); }
// What a kernel's answer depends on must have happened first.
inline void sync(abi::ThreadSlot& slot) { call(slot, abi::Call::sync); }

}  // namespace rnicsim::clock

// The turn: how it is given to a thread, and how the simulation waits until it comes back.

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "sim/attached/native_thread.h"
#include "sim/attached/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
using Clock = std::chrono::steady_clock;  // the real one: how long a program really takes to come back
// A busy wait this long saves a sleep, and the 5 us and more of waking from it, for most turns.
constexpr std::int64_t kBusyUs = 15;
// The same on the program's side, in looks of some 20 ns.
constexpr std::uint32_t kShortBusyWait = 100;
constexpr std::uint32_t kLongBusyWait = 4'000;
constexpr std::int64_t kFirstLookUs = 40;
constexpr std::int64_t kEarlyLookUs = 8;
constexpr std::int64_t kLongestLookUs = 20'000;
constexpr std::int64_t kHousekeepingUs = 1'000;
// In the real kernel for longer than any call takes that does not block.
constexpr std::int64_t kBlockedUs = 3'000;
constexpr std::int64_t kStuckUs = 3'000'000;
constexpr int kLookSignal = 62;

std::int64_t microseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t us) {
  const timespec timeout{us / 1'000'000, us % 1'000'000 * 1000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

}  // namespace

Duration TimeKeeper::clock_limit(const Thread& thread, Duration start) const {
  const Duration idle{(start - thread.idle_since).ps / 16};
  return start + std::clamp(idle, params_.clock_slack, params_.most_clock_slack);
}

void TimeKeeper::grant(Thread& thread) {
  Process& process = *thread.process;
  process.flush_writes();
  ThreadSlot& slot = slot_of(thread);
  const Duration start = clock_of(thread);
  if (thread.seen_memory_writes != process.memory_writes) thread.idle_since = start;
  thread.seen_memory_writes = process.memory_writes;
  thread.seen_ring_writes = process.ring_writes;
  Duration limit = clock_limit(thread, start);
  if (process.alarm.deadline) limit = std::min(limit, std::max(*process.alarm.deadline, start));
  slot.run_until = std::uint64_t(limit.ps);
  slot.act_until = std::uint64_t((start + params_.act_slack).ps);
  slot.acted = 0;
  // A thread that runs again and again has a processor to itself: the other one is ours.
  slot.busy_wait = last_run_ == &thread ? kLongBusyWait : kShortBusyWait;
  last_run_ = &thread;
  thread.state = ThreadState::running;
  running_ = &thread;
  release(thread);
}

void TimeKeeper::release(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  slot.turn.store(ThreadSlot::kProcess, std::memory_order_seq_cst);
  if ((slot.sleeping.load(std::memory_order_seq_cst) & ThreadSlot::kProcess) != 0) futex_wake(slot.turn);
}

// False: it died, or is blocked in the real kernel.
bool TimeKeeper::await_return(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const auto start = Clock::now();
  std::int64_t next_look = thread.has_spun ? kEarlyLookUs : kFirstLookUs;
  const std::int64_t busy = std::min(kBusyUs, next_look);
  do {
    for (int i = 0; i < 20; ++i) {
      if (slot.turn.load(std::memory_order_acquire) == ThreadSlot::kKernel) {
        running_ = nullptr;
        return true;
      }
      __builtin_ia32_pause();
    }
  } while (microseconds_since(start) < busy);
  std::int64_t next_housekeeping = kHousekeepingUs;
  std::int64_t next_report = kStuckUs;
  slot.sleeping.fetch_or(ThreadSlot::kKernel);
  bool returned = true;
  while (slot.turn.load(std::memory_order_seq_cst) != ThreadSlot::kKernel) {
    const std::int64_t elapsed = microseconds_since(start);
    if (elapsed >= next_housekeeping) {
      output_.drain();
      if (while_waiting) while_waiting();
      if (thread.process->has_exited()) {
        handler_->process_died(*thread.process);
        returned = false;
        break;
      }
      if (!patient_ && elapsed >= next_report) {
        report_stuck(thread, elapsed);
        next_report = elapsed + kStuckUs;
      }
      next_housekeeping = elapsed + kHousekeepingUs;
    }
    if (elapsed >= next_look) {
      if (!look_at(thread, elapsed)) {
        returned = false;
        break;
      }
      next_look = elapsed + std::min(elapsed, kLongestLookUs);
    }
    futex_wait(slot.turn, ThreadSlot::kProcess, std::max<std::int64_t>(10, std::min(next_look, next_housekeeping) - elapsed));
  }
  slot.sleeping.fetch_and(~ThreadSlot::kKernel);
  running_ = nullptr;
  return returned;
}

// A thread that does not come back: waits it for memory (it is asked to prove it), or in the real kernel? False: the
// latter; it holds nobody back from now on.
bool TimeKeeper::look_at(Thread& thread, std::int64_t elapsed_us) {
  const NativeThread native(thread.process->identity().pid, slot_of(thread).tid);
  if (elapsed_us < kBlockedUs || !native.sleeps()) {
    native.send(kLookSignal);
    return true;
  }
  // It may have come back, and be asleep for that, while this process did not have a processor.
  if (patient_ || slot_of(thread).turn == ThreadSlot::kKernel) return true;
  disturbed(fmt::format("{}: blocked in the real kernel, {}", thread.process->label(), native.system_call()));
  schedule(thread, ThreadState::in_real_kernel, std::nullopt, false);
  return false;
}

void TimeKeeper::report_stuck(const Thread& thread, std::int64_t elapsed_us) const {
  fmt::print(stderr, "rnicsim: simulated time stands at {} because {} has run for {} s without a call\n{}",
             to_string(now()), thread.process->label(), elapsed_us / 1'000'000, describe());
}

// Threads that came back from the real kernel; true if there was one.
bool TimeKeeper::poll_real_kernel() {
  bool waiting = false;
  for (const auto& process : processes_) {
    for (Thread& thread : process->threads) {
      if (thread.state != ThreadState::in_real_kernel) continue;
      waiting = true;
      if (process->has_exited()) {
        handler_->process_died(*process);
        return true;
      }
      if (slot_of(thread).turn != ThreadSlot::kKernel) continue;
      collect(thread);
      schedule(thread, ThreadState::due, std::max(clock_of(thread), now()), slot_of(thread).call != abi::Call::sync);
      return true;
    }
  }
  if (waiting) ::usleep(200);
  output_.drain();
  return false;
}

// What the thread did in its turn, at its own time.
void TimeKeeper::collect(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  // Shared memory is the program's to scribble on: its clock only goes forward, and not by more than an hour at a time.
  constexpr std::uint64_t kMostAhead = 3600ull * 1'000'000'000'000ull;
  const auto base = std::uint64_t(now().ps);
  slot.now = std::clamp<std::uint64_t>(slot.now, base, base + kMostAhead);
  if (slot.acted != 0) thread.idle_since = clock_of(thread);
  take_posted(thread);
  handler_->collect_all(clock_of(thread));
  output_.drain();
  descriptors_changed_ = true;
}

void TimeKeeper::take_posted(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const auto base = std::uint64_t(now().ps);
  const std::uint32_t produced = slot.mmio_produced.load(std::memory_order_acquire);
  std::uint32_t consumed = slot.mmio_consumed.load(std::memory_order_relaxed);
  if (produced - consumed > ThreadSlot::kMmioEntries) consumed = produced;  // scribbled on
  for (; consumed != produced; ++consumed) {
    const abi::MmioWrite& entry = slot.mmio[consumed % ThreadSlot::kMmioEntries];
    const std::uint64_t time = std::clamp(entry.time, base, std::max(base, slot.now));
    posted_.push({std::int64_t(time)}, {thread.process, entry});
  }
  slot.mmio_consumed.store(consumed, std::memory_order_release);
}

}  // namespace rnicsim::sim

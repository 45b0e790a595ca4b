// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/native_programs.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/attached/native/native_thread.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
using Clock = std::chrono::steady_clock;  // real time: how long a program really takes to return
// With a processor to wait on, a busy wait of this length saves a sleep, and its wake-up of 5 us and more, in most
// turns.
constexpr std::int64_t kBusyUs = 40;
// The busy wait of the program's side, in reads of some 20 ns each, as long as no other thread needs the processor.
constexpr std::uint32_t kBusyWait = 4'000;
constexpr std::int64_t kFirstLookUs = 40;
constexpr std::int64_t kLongestLookUs = 20'000;
constexpr std::int64_t kHousekeepingUs = 1'000;
// After this many turns without an inspection the next one is expected to be prompt, too. A timeout beyond the
// kernel's next tick costs no timer interrupt, which takes 1.5 us in a virtual machine.
constexpr std::uint64_t kPromptTurns = 4'096;
constexpr std::int64_t kPromptUs = 5'000;
// Time in a system call after which the call is taken to block.
constexpr std::int64_t kBlockedUs = 3'000;
// A thread that ends may wait for a lock of another thread, or for a processor, which takes longer on a busy machine.
constexpr std::int64_t kLeavingUs = 100'000;
constexpr std::int64_t kLongestLeavingUs = 2'000'000;

std::int64_t microseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t us) {
  const timespec timeout{us / 1'000'000, us % 1'000'000 * 1000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

NativeThread native(const Thread& thread) { return {thread.process->identity().pid, slot_of(thread).tid}; }

}  // namespace

// The waits between inspections are short; the default timer slack would add 50 us to each.
NativePrograms::NativePrograms() {
  constexpr unsigned long kSlackNs = 1'000;
  ::prctl(PR_SET_TIMERSLACK, kSlackNs);
}

void NativePrograms::give_turn(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  // This thread may have to run on the processor where the last one waits busily.
  const Turn turn{thread.process, thread.index};
  of_another_ = last_ != turn;
  if (last_.process != nullptr && of_another_)
    std::atomic_ref(last_.process->slot(last_.thread).busy_wait).store(0, std::memory_order_relaxed);
  std::atomic_ref(slot.busy_wait).store(processors_.apart() ? kBusyWait : 0, std::memory_order_relaxed);
  if (slot.tid != 0 && std::exchange(thread.asked_to_move, false))  // the thread has begun
    processors_.place_within(pid_t(slot.tid), *thread.affinity);
  else
    processors_.place(pid_t(slot.tid));
  last_ = turn;
  slot.turn.store(ThreadSlot::kProcess, std::memory_order_seq_cst);
  if ((slot.sleeping.load(std::memory_order_seq_cst) & ThreadSlot::kProcess) != 0) futex_wake(slot.turn);
}

TurnEnd NativePrograms::await_turn_end(Thread& thread, const Meanwhile& meanwhile) {
  ThreadSlot& slot = slot_of(thread);
  const auto start = Clock::now();
  processors_.turn_began(of_another_, start);
  while (processors_.apart() && microseconds_since(start) < kBusyUs) {
    for (int i = 0; i < 20; ++i) {
      if (slot.turn.load(std::memory_order_acquire) == ThreadSlot::kKernel) return TurnEnd::given_back;
      __builtin_ia32_pause();
    }
  }
  processors_.before_sleep();
  slot.sleeping.fetch_or(ThreadSlot::kKernel);
  const TurnEnd end = sleep_until_end(thread, meanwhile);
  slot.sleeping.fetch_and(~ThreadSlot::kKernel);
  processors_.after_sleep();
  return end;
}

// Sends abi::kLookSignal, by which the thread reports whether it waits for memory. One signal at a time: real-time
// signals queue, and a thread that had no processor for a while would handle all of them, each with a frame on its
// stack. A signal that was taken without an answer is sent again. A process without the handler would be killed by the
// signal.
void NativePrograms::ask(const Thread& thread, std::int64_t elapsed_us) {
  const NativeThread asked = native(thread);
  if (!answering_.contains(slot_of(thread).tid)) {
    if (!asked.catches(abi::kLookSignal)) return;
    answering_.insert(slot_of(thread).tid);
  }
  const bool unanswered = slot_of(thread).asked.exchange(1) != 0;
  if (unanswered && (elapsed_us < kLongestLookUs || asked.awaits(abi::kLookSignal))) return;
  asked.send(abi::kLookSignal);
}

// Inspects a thread that does not return. True: the thread is blocked in a system call. Otherwise the thread is asked
// to prove that it waits for memory.
bool NativePrograms::is_blocked(const Thread& thread, std::int64_t elapsed_us, std::int64_t silent_us) {
  if (silent_us < kBlockedUs || !native(thread).sleeps()) {
    ask(thread, elapsed_us);
    return false;
  }
  // The thread may have given the turn back, and sleep for that reason, while this process had no processor.
  return slot_of(thread).turn != ThreadSlot::kKernel;
}

TurnEnd NativePrograms::sleep_until_end(Thread& thread, const Meanwhile& meanwhile) {
  ThreadSlot& slot = slot_of(thread);
  const auto start = Clock::now();
  const bool is_prompt = ++turns_since_look_ > kPromptTurns;
  std::int64_t next_look_us = is_prompt ? kPromptUs : kFirstLookUs, look_pause_us = kFirstLookUs;
  std::int64_t next_housekeeping = is_prompt ? kPromptUs : kHousekeepingUs;
  std::int64_t output_at = 0;  // a program with a full pipe waits for the simulator
  while (slot.turn.load(std::memory_order_seq_cst) != ThreadSlot::kKernel) {
    const std::int64_t elapsed = microseconds_since(start);
    const std::chrono::microseconds waited(elapsed);
    if (elapsed >= next_housekeeping) {
      if (meanwhile(waited)) output_at = elapsed;
      turns_since_look_ = 0;
      // The process may have given the turn back and ended after that.
      if (has_ended(*thread.process))
        return slot.turn.load() == ThreadSlot::kKernel ? TurnEnd::given_back : TurnEnd::died;
      next_housekeeping = elapsed + kHousekeepingUs;
    }
    if (elapsed >= next_look_us) {
      processors_.looked();
      turns_since_look_ = 0;
      if (is_blocked(thread, elapsed, elapsed - output_at)) {
        if (!meanwhile(waited)) return TurnEnd::blocked;
        output_at = elapsed;
      }
      next_look_us = elapsed + look_pause_us;
      look_pause_us = std::min(2 * look_pause_us, kLongestLookUs);
    }
    futex_wait(slot.turn, ThreadSlot::kProcess,
               std::max<std::int64_t>(10, std::min(next_look_us, next_housekeeping) - elapsed));
  }
  return TurnEnd::given_back;
}

// A thread that ends frees its stack, which the next thread may get, and wakes the thread that joins it. Thread 0
// exists as long as its process.
void NativePrograms::await_thread_end(const Thread& thread) {
  if (thread.index == 0) return;
  const auto left = native(thread);
  const auto start = Clock::now();
  const auto waits_for_others = [&] {
    const auto elapsed = microseconds_since(start);
    return elapsed >= kLeavingUs && (left.sleeps() || elapsed >= kLongestLeavingUs);
  };
  while (left.exists() && !waits_for_others()) ::usleep(10);
}

SignalMasks NativePrograms::signal_masks(const Thread& thread) const {
  const auto sets = native(thread).signal_sets();
  const auto set = [&](const char* name) {
    const auto found = sets.find(name);
    return found != sets.end() ? found->second : 0;
  };
  return {set("SigBlk"), set("SigIgn"), set("SigCgt"), set("SigPnd") | set("ShdPnd")};
}

void NativePrograms::interrupt(const Thread& thread, std::uint32_t signal) { native(thread).send(int(signal)); }

bool NativePrograms::is_stopped(const Thread& thread) const { return native(thread).is_stopped(); }
bool NativePrograms::sleeps(const Thread& thread) const { return native(thread).sleeps(); }
std::chrono::microseconds NativePrograms::processor_time(const Process& process) const {
  return processor_time_of(process.identity().pid);
}
std::string NativePrograms::activity(const Thread& thread) const { return native(thread).system_call(); }

}  // namespace rnicsim::sim

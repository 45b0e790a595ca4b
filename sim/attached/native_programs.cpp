#include "sim/attached/native_programs.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/attached/native_thread.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
using Clock = std::chrono::steady_clock;  // the real one: how long a program really takes to come back
// Where there are processors to wait on, a busy wait this long saves a sleep, and the 5 us and more of waking from it,
// for most turns.
constexpr std::int64_t kBusyUs = 40;
// The same on the program's side, in looks of some 20 ns: as long as nobody else needs the processor.
constexpr std::uint32_t kBusyWait = 4'000;
constexpr std::int64_t kFirstLookUs = 40;
constexpr std::int64_t kLongestLookUs = 20'000;
constexpr std::int64_t kHousekeepingUs = 1'000;
// Where nobody had to be looked at for so many turns, the next one is not expected to be: a sleep that ends behind the
// kernel's next tick costs it no timer, 1.5 us of a virtual machine's.
constexpr std::uint64_t kPromptTurns = 4'096;
constexpr std::int64_t kPromptUs = 5'000;
// In the real kernel for longer than any call takes that does not block.
constexpr std::int64_t kBlockedUs = 3'000;
// A thread that leaves may yet wait for what others hold; or for a processor, and that is longer on a busy machine.
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

// Between two looks lie a few microseconds; the kernel would make 50 more of them.
NativePrograms::NativePrograms() {
  constexpr unsigned long kSlackNs = 1'000;
  ::prctl(PR_SET_TIMERSLACK, kSlackNs);
}

void NativePrograms::give_turn(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  // Where the one stands that ran last, this one may have to run.
  const Turn turn{thread.process, thread.index};
  of_another_ = last_ != turn;
  if (last_.process != nullptr && of_another_)
    std::atomic_ref(last_.process->slot(last_.thread).busy_wait).store(0, std::memory_order_relaxed);
  std::atomic_ref(slot.busy_wait).store(processors_.apart() ? kBusyWait : 0, std::memory_order_relaxed);
  if (slot.tid != 0 && std::exchange(thread.asked_to_move, false))  // it has begun
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

// Signals queue, and those of a thread without a processor for a while (a stopped one) come all at once, each with a
// frame on its stack: one at a time. One that was taken without telling so is lost. A process that said hello and never
// took its first turn may not be ours: the signal would end it.
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

// A thread that does not come back: waits it for memory (it is asked to prove it), or in the real kernel? True: the
// latter.
bool NativePrograms::is_blocked(const Thread& thread, std::int64_t elapsed_us, std::int64_t silent_us) {
  if (silent_us < kBlockedUs || !native(thread).sleeps()) {
    ask(thread, elapsed_us);
    return false;
  }
  // It may have come back, and be asleep for that, while this process did not have a processor.
  return slot_of(thread).turn != ThreadSlot::kKernel;
}

TurnEnd NativePrograms::sleep_until_end(Thread& thread, const Meanwhile& meanwhile) {
  ThreadSlot& slot = slot_of(thread);
  const auto start = Clock::now();
  const bool is_prompt = ++turns_since_look_ > kPromptTurns;
  std::int64_t next_look_us = is_prompt ? kPromptUs : kFirstLookUs, look_pause_us = kFirstLookUs;
  std::int64_t next_housekeeping = is_prompt ? kPromptUs : kHousekeepingUs;
  std::int64_t output_at = 0;  // whoever fills its pipe waits for us
  while (slot.turn.load(std::memory_order_seq_cst) != ThreadSlot::kKernel) {
    const std::int64_t elapsed = microseconds_since(start);
    const std::chrono::microseconds waited(elapsed);
    if (elapsed >= next_housekeeping) {
      if (meanwhile(waited)) output_at = elapsed;
      turns_since_look_ = 0;
      // It may have given the turn back since, and ended then.
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

// It frees its stack, which the next thread may get, and ends the wait of whoever joins it. The first one stays as long
// as its process.
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

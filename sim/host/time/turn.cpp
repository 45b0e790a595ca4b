// SPDX-License-Identifier: Apache-2.0
#include "sim/host/time/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"

namespace rnicsim::clock {

constinit thread_local std::uint64_t activity_of_thread = 0;
constinit thread_local Repetition clock_reads_of_thread;
constinit thread_local LooksAt thread_looks_at = LooksAt::unknown;
constinit thread_local bool looks_while_followed = false;

namespace {

using abi::ThreadSlot;

thread_local int raised_in_thread = 0;
void (*follow_clock_loop_by)(abi::ThreadSlot& slot) = nullptr;
void (*raise_here)(const abi::SignalRecord&) = nullptr;

// Limit of the busy wait that the simulator asks for: it knows whether others need a processor.
constexpr std::uint32_t kLongestBusyWait = 10'000;

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  constexpr timespec kNap{1, 0};  // then checks whether the simulator still lives
  return checked_call(SYS_futex, &word, operation, value, operation == FUTEX_WAIT ? &kNap : nullptr, nullptr, 0);
}

void give_turn(ThreadSlot& slot) {
  slot.turn.store(ThreadSlot::kKernel, std::memory_order_seq_cst);
  if ((slot.sleeping.load(std::memory_order_seq_cst) & ThreadSlot::kKernel) != 0) futex(slot.turn, FUTEX_WAKE, 1);
  if (!simulated()) kick();
}

void await_turn(ThreadSlot& slot) {
  const std::atomic_ref looks(slot.busy_wait);
  for (std::uint32_t i = 0; i < std::min(looks.load(std::memory_order_relaxed), kLongestBusyWait); ++i) {
    if (slot.turn.load(std::memory_order_acquire) == ThreadSlot::kProcess) return;
    __builtin_ia32_pause();
  }
  slot.sleeping.fetch_or(ThreadSlot::kProcess);
  while (slot.turn.load(std::memory_order_seq_cst) != ThreadSlot::kProcess) {
    const bool napped = futex(slot.turn, FUTEX_WAIT, ThreadSlot::kKernel) != 0 && errno == ETIMEDOUT;
    // After a simulator died without a message, its programs end, because nothing will give them a turn.
    char byte;
    constexpr int kLook = MSG_PEEK | MSG_DONTWAIT;
    if (napped && raw_call(SYS_recvfrom, session()->socket, &byte, 1, kLook, nullptr, nullptr) == 0)
      checked_call(SYS_exit_group, 125);
  }
  slot.sleeping.fetch_and(~ThreadSlot::kProcess);
}

void submit(ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments) {
  ++activity_of_thread;
  slot.call = code;
  std::ranges::copy(arguments, slot.argument);
  give_turn(slot);
}

// Keeps the results of a call while signal handlers make calls of their own.
class Answer {
 public:
  explicit Answer(ThreadSlot& slot) : slot_(slot), error_(errno), value_(slot.value), output_bytes_(slot.output_bytes) {
    std::ranges::copy(slot.argument, argument_);
    std::ranges::copy(slot.output, output_);
  }
  ~Answer() {
    errno = error_;
    slot_.value = value_;
    slot_.output_bytes = output_bytes_;
    std::ranges::copy(argument_, slot_.argument);
    std::ranges::copy(output_, slot_.output);
  }

 private:
  ThreadSlot& slot_;
  const int error_;
  const std::uint64_t value_;
  const std::uint32_t output_bytes_;
  decltype(ThreadSlot::argument) argument_;
  decltype(ThreadSlot::output) output_;
};

}  // namespace

int call_without_signals(ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments) {
  const int saved = errno;
  if (code != abi::Call::sync && code != abi::Call::look) ++slot.acted;
  submit(slot, code, arguments);
  await_turn(slot);
  errno = saved;
  return slot.error;
}

void raise_signals(ThreadSlot& slot) {
  std::uint32_t count = std::min(std::exchange(slot.signal_count, 0u), ThreadSlot::kMaxSignals);
  if (count == 0) return;
  looks_while_followed = false;
  abi::SignalRecord due[ThreadSlot::kMaxSignals];
  std::copy_n(slot.signal, count, due);
  const Answer answer(slot);
  raised_in_thread = kCancelSignal;  // unless there is another signal
  for (const abi::SignalRecord* signal = due; count > 0; ++signal, --count) {
    if (signal->number != kCancelSignal) raised_in_thread = int(signal->number);
    raise_here(*signal);
  }
}

void follow_clock_loops_by(void (*follow)(ThreadSlot& slot)) { follow_clock_loop_by = follow; }
void follow_clock_loop(ThreadSlot& slot) {
  thread_looks_at = LooksAt::unknown;
  if (follow_clock_loop_by != nullptr) follow_clock_loop_by(slot);
}

void raise_signals_by(void (*raise)(const abi::SignalRecord& signal)) { raise_here = raise; }

bool restarts_after_signal() {
  if (raised_in_thread == kCancelSignal) return true;
  struct sigaction action {};
  return ::sigaction(raised_in_thread, nullptr, &action) == 0 && (action.sa_flags & SA_RESTART) != 0;
}

int call(ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments) {
  const int error = call_without_signals(slot, code, arguments);
  raise_signals(slot);
  return error;
}

int call_cancellably(ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments) {
  for (;;) {
    cancellation_point();
    const int error = call(slot, code, arguments);
    if (!ended_by_cancellation(error)) return error;
  }
}

// The results of a wait are not lost: the thread ends at its next cancellation point. A thread that has disabled
// cancellation meanwhile goes on.
bool ended_by_cancellation(int error) {
  if (error != EINTR) return false;
  cancellation_point();
  return raised_in_thread == kCancelSignal;
}

void leave(ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments) {
  submit(slot, code, arguments);
}

// In real time the simulator serves many threads at once, and sleeps on its sockets.
void kick() {
  auto& sleeps = *reinterpret_cast<std::atomic<std::uint32_t>*>(session()->control + abi::kDoorbellWord);
  if (sleeps.load() == 0 || sleeps.exchange(0) == 0) return;
  const abi::DescriptorMessage nothing;
  checked_call(SYS_sendto, session()->socket, &nothing, sizeof nothing, MSG_NOSIGNAL, nullptr, 0);
}

void wait_for_turn() { await_turn(*own_slot()); }

void charge(ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times) {
  if (!simulated()) return;
  charge_ahead(slot, cost, times);
  if (slot.now >= slot.act_until) catch_up(slot);
}

void charge_ahead(ThreadSlot& slot, abi::CpuCost cost, std::uint32_t times) {
  ++activity_of_thread;
  slot.now += std::uint64_t(session()->header().cost[std::size_t(cost)]) * times;
  ++slot.acted;
}

void charge_clock_read(ThreadSlot& slot) {
  slot.now += cost_of_clock_read(slot, clock_reads_of_thread.before());
  count_clock_read(slot);
  ++activity_of_thread;
  if (slot.now >= slot.run_until) catch_up(slot);
  clock_reads_of_thread.end();
}

}  // namespace rnicsim::clock

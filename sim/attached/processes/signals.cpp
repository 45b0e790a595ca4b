// SPDX-License-Identifier: Apache-2.0
// Choice of the thread that takes a signal, and of the time. The thread raises the signal in itself in its own turn; a
// signal that all threads block waits here.
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

// signal(7): ignored unless caught.
constexpr SignalSet kIgnoredByDefault = set_of(SIGCHLD) | set_of(SIGCONT) | set_of(SIGURG) | set_of(SIGWINCH);

bool discards(const SignalMasks& masks, SignalSet signal) {
  return (masks.ignored & signal) != 0 || ((kIgnoredByDefault & signal) != 0 && (masks.caught & signal) == 0);
}

constexpr std::size_t kMostDue = 1024;

bool lives(const Thread& thread) { return thread.state != ThreadState::free && thread.state != ThreadState::starting; }

bool stops(const SignalMasks& masks, SignalSet signal) {
  return (kStops & signal) != 0 && ((masks.ignored | masks.caught) & signal) == 0;
}

bool awaits(const Thread& thread, SignalSet signal) {
  return thread.state == ThreadState::awaiting_signal && (thread.wanted_signals & signal) != 0;
}

}  // namespace

Thread* TimeKeeper::thread_numbered(Process& process, std::uint32_t virtual_tid) {
  const auto found = std::ranges::find_if(process.threads, [&](const Thread& thread) {
    return lives(thread) && slot_of(thread).virtual_tid == virtual_tid;
  });
  return found != process.threads.end() ? &*found : nullptr;
}

bool TimeKeeper::raise(Process& process, const abi::SignalRecord& signal, Thread* only) {
  if (!params_.simulated || !process.alive) return true;
  const SignalSet bit = set_of(signal.number);
  if (signal.number == SIGCONT) go_on(process);
  if ((kStops & bit) != 0) drop_pending(process, set_of(SIGCONT));
  if (signal.number == SIGSTOP) {
    stop(process, SIGSTOP);
    return true;
  }
  for (Thread& thread : process.threads) {
    if (!lives(thread) || (only != nullptr && &thread != only)) continue;
    if (awaits(thread, bit)) {
      put_output(slot_of(thread), signal);
      wake(thread);
      return true;
    }
    const SignalMasks masks = programs_.signal_masks(thread);
    if ((masks.blocked & bit) != 0) continue;
    if (stops(masks, bit)) {
      if (!in_orphaned_group(process)) stop(process, signal.number);
    } else if (!discards(masks, bit)) {
      give(thread, signal);
    }
    return true;
  }
  const bool has_room = (only != nullptr ? only->pending_signals : process.pending_signals).push(signal);
  show_pending(process);
  // The signal may be readable from a signalfd, by this thread alone.
  if (only != nullptr && only->state == ThreadState::awaiting_descriptors && !process.signal_watches.empty())
    wake(*only);
  return has_room;
}

// Delivers at once if the thread waits, else at its next turn.
void TimeKeeper::give(Thread& thread, const abi::SignalRecord& signal) {
  if (thread.state == ThreadState::in_real_kernel) return programs_.interrupt(thread, signal.number);
  // A signal counts as pending until the thread has raised it.
  const auto same = [&](const abi::SignalRecord& due) { return due.number == signal.number; };
  const bool waits = signal.number < kFirstRealTime && std::ranges::any_of(thread.due_signals, same);
  if (waits || thread.due_signals.size() >= kMostDue) return;
  thread.due_signals.push_back(signal);
  end_wait_for_signal(thread);
}

void TimeKeeper::show_pending(Process& process) {
  for (const Thread& thread : process.threads)
    if (lives(thread)) slot_of(thread).pending = process.pending_signals.set() | thread.pending_signals.set();
  show_watches(process, process.pending_signals.set());
}

std::optional<abi::SignalRecord> TimeKeeper::take_pending(Thread& thread, SignalSet set) {
  auto taken = thread.pending_signals.take(set);
  if (!taken) taken = thread.process->pending_signals.take(set);
  if (taken) show_pending(*thread.process);
  return taken;
}

bool TimeKeeper::await_signal(Thread& thread, ThreadSlot& slot, std::optional<Duration> until) {
  if (const auto waits = take_pending(thread, slot.argument[0])) {
    put_output(slot, *waits);
    return true;
  }
  if (until && *until <= now()) return answer(slot, EAGAIN);
  thread.wanted_signals = slot.argument[0];
  wait(thread, ThreadState::awaiting_signal, until);
  return false;
}

bool TimeKeeper::take_signals(Thread& thread, const ThreadSlot& slot) {
  while (const auto waits = take_pending(thread, ~slot.argument[0])) {
    if (stops(programs_.signal_masks(thread), set_of(waits->number))) {
      if (!in_orphaned_group(*thread.process)) stop(*thread.process, waits->number);
    } else {
      thread.due_signals.push_back(*waits);
    }
  }
  return true;
}

// Called when the thread gets its turn.
void TimeKeeper::hand_over_signals(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  slot.signal_count = 0;
  while (slot.signal_count < ThreadSlot::kMaxSignals) {
    if (thread.due_signals.empty()) return;
    slot.signal[slot.signal_count++] = thread.due_signals.front();
    thread.due_signals.pop_front();
  }
}

// Ends the thread's wait with EINTR. False: the thread does not wait, or its wait ignores signals.
bool TimeKeeper::end_wait_for_signal(Thread& thread) {
  switch (thread.state) {
    case ThreadState::sleeping:
    case ThreadState::awaiting_descriptors:
    case ThreadState::awaiting_address:
    case ThreadState::awaiting_child:
    case ThreadState::awaiting_signal:
    case ThreadState::awaiting_ipc: resume(thread, now(), EINTR); return true;
    case ThreadState::polling: end_loop(thread, now() + times_of(*thread.process).detect, false); return true;
    case ThreadState::spinning: resume(thread, now()); return true;
    default: return false;
  }
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

bool is_stopping(const SignalMasks& masks, SignalSet signal) {
  return (kStops & signal) != 0 && ((masks.ignored | masks.caught) & signal) == 0;
}

bool awaits(const Thread& thread, SignalSet signal) {
  const auto* wait = std::get_if<WaitForSignal>(&thread.wait);
  return wait != nullptr && (wait->wanted & signal) != 0;
}

}  // namespace

Thread* Signals::thread_numbered(Process& process, std::uint32_t virtual_tid) {
  const auto found = std::ranges::find_if(process.threads, [&](const Thread& thread) {
    return lives(thread) && slot_of(thread).virtual_tid == virtual_tid;
  });
  return found != process.threads.end() ? &*found : nullptr;
}

bool Signals::raise(Process& process, const abi::SignalRecord& signal, Thread* only) {
  if (!simulated_ || !process.alive) return true;
  const SignalSet bit = set_of(signal.number);
  if (signal.number == SIGCONT) stops_.go_on(process);
  if ((kStops & bit) != 0) stops_.drop_pending(process, set_of(SIGCONT));
  if (signal.number == SIGSTOP) {
    stops_.stop(process, SIGSTOP);
    return true;
  }
  for (Thread& thread : process.threads) {
    if (!lives(thread) || (only != nullptr && &thread != only)) continue;
    if (awaits(thread, bit)) {
      put_output(slot_of(thread), signal);
      threads_.wake(thread);
      return true;
    }
    const SignalMasks masks = programs_.signal_masks(thread);
    if ((masks.blocked & bit) != 0) continue;
    if (is_stopping(masks, bit)) {
      if (!stops_.in_orphaned_group(process)) stops_.stop(process, signal.number);
    } else if (!discards(masks, bit)) {
      give(thread, signal);
    }
    return true;
  }
  const bool has_room = (only != nullptr ? only->pending_signals : process.pending_signals).push(signal);
  show_pending(process);
  // The signal may be readable from a signalfd, by this thread alone.
  if (only != nullptr && only->state == ThreadState::awaiting_descriptors && !process.signal_watches.empty())
    threads_.wake(*only);
  return has_room;
}

// Delivers at once if the thread waits, else at its next turn.
void Signals::give(Thread& thread, const abi::SignalRecord& signal) {
  if (thread.state == ThreadState::in_real_kernel) return programs_.interrupt(thread, signal.number);
  // A signal counts as pending until the thread has raised it.
  const auto same = [&](const abi::SignalRecord& due) { return due.number == signal.number; };
  const bool waits = signal.number < kFirstRealTime && std::ranges::any_of(thread.due_signals, same);
  if (waits || thread.due_signals.size() >= kMostDue) return;
  thread.due_signals.push_back(signal);
  threads_.end_wait_for_signal(thread);
}

void Signals::show_pending(Process& process) {
  for (const Thread& thread : process.threads)
    if (lives(thread)) slot_of(thread).pending = process.pending_signals.set() | thread.pending_signals.set();
  watches_.show(process, process.pending_signals.set());
}

std::optional<abi::SignalRecord> Signals::take_pending(Thread& thread, SignalSet set) {
  auto taken = thread.pending_signals.take(set);
  if (!taken) taken = thread.process->pending_signals.take(set);
  if (taken) show_pending(*thread.process);
  return taken;
}

bool Signals::await_signal(Thread& thread, ThreadSlot& slot, std::optional<Duration> until) {
  if (const auto waits = take_pending(thread, slot.argument[0])) {
    put_output(slot, *waits);
    return true;
  }
  if (until && *until <= now()) return answer(slot, EAGAIN);
  threads_.wait(thread, ThreadState::awaiting_signal, until, WaitForSignal{slot.argument[0]});
  return false;
}

bool Signals::take_signals(Thread& thread, const ThreadSlot& slot) {
  while (const auto waits = take_pending(thread, ~slot.argument[0])) {
    if (is_stopping(programs_.signal_masks(thread), set_of(waits->number))) {
      if (!stops_.in_orphaned_group(*thread.process)) stops_.stop(*thread.process, waits->number);
    } else {
      thread.due_signals.push_back(*waits);
    }
  }
  return true;
}

bool Signals::read_signals(Thread& thread, ThreadSlot& slot) {
  const auto found = thread.process->signal_watches.find(std::uint32_t(slot.argument[0]));
  if (found == thread.process->signal_watches.end()) return answer(slot, EINVAL);
  constexpr std::size_t kMost = sizeof slot.output / (sizeof(abi::SignalRecord));
  const SignalSet set = *found->second.set;
  // Signals from outside the simulation are read by the program itself.
  if (thread.process->outside_signals != 0) {
    thread.process->outside_signals = watches_.outside_signals(thread);
    watches_.show(*thread.process, thread.process->pending_signals.set());
  }
  const auto most = std::min<std::uint64_t>(slot.argument[1], kMost);
  slot.argument[2] = set;
  for (slot.value = 0; slot.value < most; ++slot.value) {
    const auto taken = take_pending(thread, set);
    if (!taken) break;
    std::memcpy(slot.output + slot.value * sizeof *taken, &*taken, sizeof *taken);
  }
  return true;
}

// Called when the thread gets its turn.
void Signals::hand_over_signals(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  slot.signal_count = 0;
  while (slot.signal_count < ThreadSlot::kMaxSignals) {
    if (thread.due_signals.empty()) return;
    slot.signal[slot.signal_count++] = thread.due_signals.front();
    thread.due_signals.pop_front();
  }
}

void Signals::release_orphans(const Process& dead) {
  for (const auto& process : threads_.processes()) {
    if (!process->alive || !process->stopped) continue;
    const pid_t group = ::getpgid(process->identity().pid);
    const pid_t session = ::getsid(process->identity().pid);
    const bool of_group = ::getpgid(dead.identity().pid) == group;
    const bool tied = of_group ? dead.parent == nullptr || Stops::held_together(*dead.parent, group, session)
                               : process->parent == &dead && Stops::held_together(dead, group, session);
    if (!tied || !stops_.in_orphaned_group(*process)) continue;
    raise(*process, {.number = SIGHUP, .code = SI_KERNEL});
    raise(*process, {.number = SIGCONT, .code = SI_KERNEL});
  }
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// signalfds, and the search for the timer or signalfd behind an eventfd that another process made.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

constexpr std::size_t kMostWatches = 1024;

enum class Event : std::uint64_t { timer = 1, signals };

}  // namespace

bool TimeKeeper::watch_signals(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto descriptors = process.receive_descriptors(thread.index);
  const bool is_new = slot.argument[0] == 0;
  if (is_new && descriptors.empty()) return answer(slot, EINVAL);
  if (is_new && process.signal_watches.size() >= kMostWatches) return answer(slot, EAGAIN);
  if (!descriptors.empty() && handler_->lacks_descriptors(process, "signal descriptor")) return answer(slot, EMFILE);
  const auto number = is_new ? next_shared_number_++ : std::uint32_t(slot.argument[0]);
  if (is_new) process.signal_watches[number].set = std::make_shared<SignalSet>(slot.argument[1]);
  const auto found = process.signal_watches.find(number);
  if (found == process.signal_watches.end()) return answer(slot, EINVAL);
  SignalWatch& watch = found->second;
  if (!descriptors.empty()) {
    watch.counter = EventCounter(std::move(descriptors.front()));
    watch.shown = false;
  }
  if (slot.argument[2] == 1) *watch.set = slot.argument[1];
  // Other processes that share the signalfd see the new set, too.
  for (const auto& other : processes_)
    if (other->alive && other->signal_watches.contains(number)) show_watches(*other, other->pending_signals.set());
  slot.value = number;
  return true;
}

bool TimeKeeper::read_signals(Thread& thread, ThreadSlot& slot) {
  const auto found = thread.process->signal_watches.find(std::uint32_t(slot.argument[0]));
  if (found == thread.process->signal_watches.end()) return answer(slot, EINVAL);
  constexpr std::size_t kMost = sizeof slot.output / (sizeof(abi::SignalRecord));
  const SignalSet set = *found->second.set;
  // Signals from outside the simulation are read by the program itself.
  if (thread.process->outside_signals != 0) {
    thread.process->outside_signals = outside_signals(thread);
    show_watches(*thread.process, thread.process->pending_signals.set());
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

// `waiting`: pending signals of the process and of the thread that is about to look.
void TimeKeeper::show_watches(Process& process, SignalSet waiting) {
  for (auto& [number, watch] : process.signal_watches) {
    const bool shows = (*watch.set & (waiting | process.outside_signals)) != 0;
    if (!watch.counter || std::exchange(watch.shown, shows) == shows) continue;
    if (shows) {
      watch.counter.add();
      descriptors_changed_ = true;
    } else {
      watch.counter.clear();
    }
  }
}

// Without SIGCHLD: the simulator sends it at the simulated end of a child.
SignalSet TimeKeeper::outside_signals(const Thread& thread) const {
  return programs_.signal_masks(thread).waiting & ~set_of(SIGCHLD);
}

bool TimeKeeper::hear_from_outside() {
  if (running_ != nullptr || !params_.simulated) return false;
  bool heard = false;
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    for (Thread& thread : process->threads)
      if (hears_from_outside(thread)) {
        heard = true;
        disturbed(process->label() + ": a signal came from outside the simulation");
      }
  }
  if (heard) poll_descriptors();
  return heard;
}

// True: new signals for a waiting thread.
bool TimeKeeper::hears_from_outside(Thread& thread) {
  Process& process = *thread.process;
  if (thread.state == ThreadState::awaiting_signal) {
    if ((outside_signals(thread) & thread.wanted_signals) == 0) return false;
    resume(thread, std::max(now(), clock_of(thread)) + times_of(process).wakeup, ERESTART);
    return true;
  }
  if (thread.state != ThreadState::awaiting_descriptors || process.signal_watches.empty()) return false;
  SignalSet watched = 0;
  for (const auto& [number, watch] : process.signal_watches) watched |= *watch.set;
  const SignalSet outside = outside_signals(thread) & watched;
  if ((outside & ~process.outside_signals) == 0) return false;
  process.outside_signals = outside;
  show_watches(process, process.pending_signals.set());
  return true;
}

bool TimeKeeper::find_event(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const auto descriptors = process.receive_descriptors(thread.index);
  const auto id = descriptors.empty() ? 0 : EventCounter::id_of(descriptors.front().get());
  if (id == 0) return answer(slot, ENOENT);
  const auto is_it = [&](const EventCounter& counter) { return counter && counter.id() == id; };
  for (const auto& other : processes_) {
    if (!other->alive || other->identity().host != process.identity().host) continue;
    for (const auto& [number, timer] : other->timers) {
      if (!is_it(timer->counter)) continue;
      slot.value = number;
      slot.argument[1] = std::uint64_t(Event::timer);
      slot.argument[2] = std::uint64_t(timer->clock);
      process.timers.emplace(number, timer);
      return true;
    }
    for (const auto& [number, watch] : other->signal_watches) {
      if (!is_it(watch.counter)) continue;
      slot.value = number;
      slot.argument[1] = std::uint64_t(Event::signals);
      slot.argument[3] = other.get() == &process ? 1 : 0;
      process.signal_watches.emplace(number, SignalWatch{.set = watch.set});
      return true;
    }
  }
  return answer(slot, ENOENT);
}

// The child's signalfds have no counter until the child sends its own descriptors.
void TimeKeeper::share_events(const Process& parent, Process& child) {
  for (const auto& [number, timer] : parent.timers)
    if (timer->counter) child.timers.emplace(number, timer);
  for (const auto& [number, watch] : parent.signal_watches)
    child.signal_watches.emplace(number, SignalWatch{.set = watch.set});
}

// POSIX timers are deleted; the alarm stays, and so do timerfds and signalfds that are still open.
void TimeKeeper::replace_image(Process& process) {
  forget_threads(process);
  const bool asks = !process.signal_watches.empty() ||
                    std::ranges::any_of(process.timers, [](const auto& entry) { return bool(entry.second->counter); });
  const auto open = asks ? EventCounter::ids_of(process.identity().pid) : std::set<std::uint64_t>{};
  std::erase_if(process.timers, [&](const auto& entry) {
    const Timer& timer = *entry.second;
    return timer.counter ? !open.contains(timer.counter.id()) : entry.first != kAlarmTimer;
  });
  std::erase_if(process.signal_watches, [&](const auto& entry) { return !open.contains(entry.second.counter.id()); });
}

}  // namespace rnicsim::sim

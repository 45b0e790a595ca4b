// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/inherited_events.h"

#include <algorithm>
#include <cerrno>
#include <set>

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

enum class Event : std::uint64_t { timer = 1, signals };

}  // namespace

bool find_event(const ThreadScheduler& threads, Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const auto descriptors = process.receive_descriptors(thread.index);
  const auto id = descriptors.empty() ? 0 : EventCounter::id_of(descriptors.front().get());
  if (id == 0) return answer(slot, ENOENT);
  const auto is_it = [&](const EventCounter& counter) { return counter && counter.id() == id; };
  for (const auto& other : threads.processes()) {
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
void share_events(const Process& parent, Process& child) {
  for (const auto& [number, timer] : parent.timers)
    if (timer->counter) child.timers.emplace(number, timer);
  for (const auto& [number, watch] : parent.signal_watches)
    child.signal_watches.emplace(number, SignalWatch{.set = watch.set});
}

// POSIX timers are deleted; the alarm stays, and so do timerfds and signalfds that are still open.
void keep_open_events(Process& process) {
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

// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/timers.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

constexpr std::uint64_t kMostTimers = 4096;
// 1 us, the resolution of setitimer(2). Shorter intervals would leave no time for anything else.
constexpr Duration kLeastInterval{1'000'000};

enum class Tells : std::uint64_t { descriptor, process, thread, nobody };

abi::SignalRecord alarm_signal() { return {.number = SIGALRM, .code = SI_KERNEL}; }

void tell_time(ThreadSlot& slot, const Timer& timer) {
  slot.value = timer.deadline ? std::uint64_t(std::max((*timer.deadline - now()).ps, std::int64_t{1})) : 0;
  slot.argument[3] = std::uint64_t(timer.interval.ps);
}

}  // namespace

bool Timers::make(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto made = std::make_shared<Timer>();
  Timer& timer = *made;
  const auto tells = Tells(slot.argument[0]);
  if (process.timers.size() >= kMostTimers) return answer(slot, EAGAIN);
  if (tells > Tells::nobody) return answer(slot, EINVAL);
  if (tells == Tells::descriptor) {
    auto descriptors = process.receive_descriptors(thread.index);
    if (descriptors.empty()) return answer(slot, EINVAL);
    if (lacks_descriptors(process, "timer")) return answer(slot, EMFILE);
    timer.counter = EventCounter(std::move(descriptors.front()));
  } else if (tells != Tells::nobody) {
    std::memcpy(&timer.signal, slot.input, sizeof timer.signal);
    if (timer.signal.number == 0 || timer.signal.number > kMostSignal) return answer(slot, EINVAL);
    if (tells == Tells::thread) timer.thread = std::uint32_t(slot.argument[1]);
  }
  const std::uint32_t number = timer.counter ? numbers_.next() : process.next_timer++;
  timer.clock = clockid_t(slot.argument[2]);
  timer.signal.pid = number;
  process.timers.emplace(number, std::move(made));
  slot.value = number;
  return true;
}

bool Timers::set(Process& process, ThreadSlot& slot) {
  const auto number = std::uint32_t(slot.argument[0]);
  if (number == kAlarmTimer && !process.timers.contains(kAlarmTimer))
    process.timers.emplace(kAlarmTimer, std::make_shared<Timer>(Timer{.signal = alarm_signal()}));
  const auto found = process.timers.find(number);
  if (found == process.timers.end()) return answer(slot, EINVAL);
  Timer& timer = *found->second;
  tell_time(slot, timer);
  const bool is_off = slot.argument[1] == 0 || slot.argument[1] == abi::kForever;
  timer.deadline = is_off ? std::nullopt : std::optional(duration(slot.argument[1]));
  timer.interval = slot.argument[2] == 0 ? Duration{} : std::max(duration(slot.argument[2]), kLeastInterval);
  // Unread expiries belong to the old setting.
  timer.counter.clear();
  ++timer.setting;
  start(process, found->second);
  return true;
}

bool Timers::get(Process& process, ThreadSlot& slot) {
  const auto found = process.timers.find(std::uint32_t(slot.argument[0]));
  if (found == process.timers.end() && slot.argument[0] != kAlarmTimer) return answer(slot, EINVAL);
  if (found == process.timers.end()) {
    slot.value = slot.argument[3] = 0;
  } else {
    tell_time(slot, *found->second);
  }
  return true;
}

// The timer exists as long as a process has it; hence the weak pointer.
void Timers::start(Process& process, const std::shared_ptr<Timer>& timer) {
  if (!timer->deadline) return;
  threads_.at(*timer->deadline, [this, &process, kept = std::weak_ptr(timer), setting = timer->setting] {
    const auto timer = kept.lock();
    if (timer && timer->setting == setting) expire(process, timer);
  });
}

void Timers::expire(Process& process, const std::shared_ptr<Timer>& ended) {
  Timer& timer = *ended;
  timer.deadline = timer.interval.ps > 0 ? std::optional(*timer.deadline + timer.interval) : std::nullopt;
  if (timer.deadline) timer.deadline = std::max(*timer.deadline, now());
  threads_.note_expiry(timer);
  start(process, ended);
  if (timer.counter) {
    timer.counter.add();
    threads_.descriptors_changed();
  } else if (timer.signal.number != 0) {
    Thread* only = timer.thread != 0 ? Signals::thread_numbered(process, timer.thread) : nullptr;
    if (timer.thread == 0 || only != nullptr) signals_.raise(process, timer.signal, only);
  }
}

std::optional<Duration> Timers::next_end(const Process& process) {
  std::optional<Duration> next;
  for (const auto& [number, timer] : process.timers)
    if (timer->deadline && (!next || *timer->deadline < *next)) next = timer->deadline;
  return next;
}

std::optional<Duration> Timers::next_end(std::uint32_t host) const {
  std::optional<Duration> first;
  for (const auto& process : threads_.processes()) {
    if (!process->alive || process->identity().host != host) continue;
    if (const auto end = next_end(*process)) first = std::min(first.value_or(*end), *end);
  }
  return first;
}

}  // namespace rnicsim::sim

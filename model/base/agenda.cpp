#include "model/base/agenda.h"

#include <algorithm>

#include "model/base/kernel.h"

namespace rnicsim {

Alarm::Alarm(Action action) : agenda_(Agenda::made()), action_(std::move(action)), rank_(agenda_.ranks_++) {}

Alarm::~Alarm() {
  if (place_ != kNowhere) agenda_.disarm(*this);
  agenda_.leave();
}

void Alarm::arm(Duration at) { agenda_.arm(*this, at); }

void Alarm::arm_by(Duration at) {
  if (!armed() || at < agenda_.heap_[place_].at) arm(at);
}

void Alarm::disarm() {
  if (armed()) agenda_.disarm(*this);
}

Agenda::Agenda() {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&wake_);
  sc_core::sc_spawn([this] { serve(); }, sc_core::sc_gen_unique_name("agenda"), &options);
}

Agenda& Agenda::made() {
  if (current_ == nullptr) current_ = new Agenda;
  ++current_->alarms_;
  return *current_;
}

void Agenda::leave() {
  if (--alarms_ != 0) return;
  current_ = nullptr;
  delete this;
}

Duration Agenda::next_alarm() const {
  auto next = kNever;
  for (const auto& due : heap_)
    if (due.alarm->armed()) next = std::min(next, due.at);
  return next;
}

Duration Agenda::next_in_kernel() {
  if (sc_core::sc_pending_activity_at_current_time()) return kernel_now();
  if (!sc_core::sc_pending_activity_at_future_time()) return kNever;
  return kernel_now() + Duration{static_cast<std::int64_t>(sc_core::sc_time_to_pending_activity().value())};
}

// --- The heap: a binary one, whose entries know their places.
void Agenda::put(std::uint32_t place, const Due& due) {
  heap_[place] = due;
  due.alarm->place_ = place;
}

void Agenda::rise(std::uint32_t place, const Due& due) {
  while (place != 0) {
    const auto parent = (place - 1) / 2;
    if (!due.before(heap_[parent])) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, due);
}

void Agenda::sink(std::uint32_t place, const Due& due) {
  for (;;) {
    auto child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(due)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, due);
}

void Agenda::arm(Alarm& alarm, Duration at) {
  at = std::max(at, now());
  const Due due{at, serving_ && at == ahead_ ? round_ + 1 : 0, alarm.rank_, &alarm};
  alarm.served_ = false;
  auto place = alarm.place_;
  if (place == Alarm::kNowhere) {
    place = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back(due);
  }
  place != 0 && due.before(heap_[(place - 1) / 2]) ? rise(place, due) : sink(place, due);
  if (!serving_ && heap_.front().alarm == &alarm) wake_at(due.at);
}

void Agenda::disarm(Alarm& alarm) {
  const auto place = std::exchange(alarm.place_, Alarm::kNowhere);
  alarm.served_ = false;
  if (serving_alarm_ == &alarm) serving_alarm_ = nullptr;
  const auto last = heap_.back();
  heap_.pop_back();
  if (last.alarm == &alarm) return;
  place != 0 && last.before(heap_[(place - 1) / 2]) ? rise(place, last) : sink(place, last);
}

// --- The process. Alarms of the kernel's own time are always served, later ones before what the kernel has to do.
Duration Agenda::limit() const {
  constexpr Duration kTick{1};
  return std::max(kernel_now() + kTick, std::min(horizon_, next_in_kernel()));
}

// An alarm stays at the root while it is served: it is armed again more often than not.
void Agenda::serve() {
  serving_ = true;
  yields_ = false;
  limit_ = limit();
  while (!heap_.empty() && !yields_ && heap_.front().at < limit_) {
    auto& alarm = *heap_.front().alarm;
    ahead_ = heap_.front().at;
    round_ = heap_.front().round;
    ++served_;
    alarm.served_ = true;
    serving_alarm_ = &alarm;
    alarm.action_();
    if (serving_alarm_ != nullptr && alarm.served_) disarm(alarm);
  }
  serving_ = false;
  // The kernel follows, even when nothing is left.
  if (!heap_.empty())
    wake_at(heap_.front().at);
  else if (ahead_ > kernel_now())
    wake_at(ahead_);
}

// An earlier call overrides a later one.
void Agenda::wake_at(Duration at) { wake_.notify(to_sc_time(at - kernel_now())); }

void wake(sc_core::sc_event& event, Duration at) {
  event.notify(to_sc_time(at - Agenda::kernel_now()));
  auto* agenda = Agenda::current();
  if (agenda != nullptr && agenda->serving_) agenda->limit_ = agenda->limit();
}

void run_until(Duration at) {
  if (auto* agenda = Agenda::current()) agenda->horizon_ = at;
  sc_core::sc_start(to_sc_time(at - Agenda::kernel_now()));
  if (auto* agenda = Agenda::current()) agenda->horizon_ = {};
}

void run_on() {
  if (auto* agenda = Agenda::current()) agenda->horizon_ = Agenda::kNever;
  sc_core::sc_start();
  if (auto* agenda = Agenda::current()) agenda->horizon_ = {};
}

}  // namespace rnicsim

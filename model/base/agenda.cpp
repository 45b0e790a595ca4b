// SPDX-License-Identifier: Apache-2.0
#include "model/base/agenda.h"

#include <algorithm>

namespace rnicsim {
namespace {

constexpr Duration kTick{1};
// Actions of alarms run foreign code in a foreign platform: its need for stack is not known.
constexpr int kThreadStackBytes = 1 << 20;

}  // namespace

Alarm::Alarm(Action action) : Alarm(std::move(action), 0) {}

Alarm::Alarm(Action action, std::uint32_t first_round)
    : agenda_(Agenda::made()), action_(std::move(action)), rank_(agenda_.admit(*this)), first_round_(first_round) {}

Alarm::~Alarm() {
  agenda_.disarm(*this);
  agenda_.leave();
}

void Alarm::disarm() { agenda_.disarm(*this); }

Agenda::Agenda(Process kind) : may_wait_(kind == Process::thread) {
  sc_core::sc_spawn_options options;
  const char* name = sc_core::sc_gen_unique_name("agenda");
  if (kind == Process::thread) {
    options.set_stack_size(kThreadStackBytes);
    process_ = sc_core::sc_spawn([this] { serve_for_ever(); }, name, &options);
    return;
  }
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&wake_);
  process_ = sc_core::sc_spawn([this] { serve(); }, name, &options);
}

Agenda& Agenda::made(Process kind) {
  if (current_ == nullptr) current_ = new Agenda(kind);
  ++current_->users_;
  return *current_;
}

void Agenda::leave() {
  if (--users_ != 0) return;
  current_ = nullptr;
  known_now_ = kNever;
  delete this;
}

Duration Agenda::next_alarm() const {
  auto next = kNever;
  for (std::size_t place = kRoot; place <= size_; ++place)
    if (places_[heap_[place].rank()] != kNowhere) next = std::min(next, heap_[place].at);
  return next;
}

Duration Agenda::next_in_kernel() {
  const auto* kernel = sc_core::sc_get_curr_simcontext();
  if (sc_core::sc_pending_activity_at_current_time(kernel)) return kernel_now();
  sc_core::sc_time next;
  return kernel->next_time(next) ? Duration{static_cast<std::int64_t>(next.value())} : kNever;
}

// --- The heap: binary, from place 1 on; each alarm knows the place of its entry. Entries that are never due follow the
// last one, so that each entry has two children to compare with.
std::uint32_t Agenda::admit(Alarm& alarm) {
  alarms_.push_back(&alarm);
  places_.push_back(kNowhere);
  heap_.resize(2 * alarms_.size() + 2, kNothing);
  return static_cast<std::uint32_t>(alarms_.size() - 1);
}

void Agenda::rise(std::size_t place, Due due) {
  auto* const heap = heap_.data();
  auto* hole = heap + place;
  while (hole != heap + kRoot) {
    auto* const parent = heap + (hole - heap) / 2;
    if (!due.before(*parent)) break;
    put(hole, *parent);
    hole = parent;
  }
  put(hole, due);
}

void Agenda::sink(std::size_t place, Due due) {
  auto* const heap = heap_.data();
  auto* hole = heap + place;
  for (;;) {
    auto* child = hole + (hole - heap);
    if (child[1].before(*child)) ++child;
    if (!child->before(due)) break;
    put(hole, *child);
    hole = child;
  }
  put(hole, due);
}

inline void Agenda::put(Due* hole, const Due& due) {
  *hole = due;
  places_[due.rank()] = static_cast<std::uint32_t>(hole - heap_.data());
}

void Agenda::move(std::size_t place, Due due) {
  place != kRoot&& due.before(heap_[place / 2]) ? rise(place, due) : sink(place, due);
}

inline Agenda::Due Agenda::due_of(const Alarm& alarm, Duration at) const {
  // Usually `at` is in the future: then now() need not be computed.
  if (at > known_now_) return {at, order(alarm.first_round_, alarm.rank_)};
  at = std::max(at, now());
  const bool is_under_way = (serving_ || held_) && at == ahead_;
  const auto round = is_under_way ? std::max(round_ + 1, alarm.first_round_) : alarm.first_round_;
  return {at, order(round, alarm.rank_)};
}

[[gnu::always_inline]] inline void Agenda::arm(Alarm& alarm, const Due& due) {
  const auto place = places_[alarm.rank_];
  if (place != kNowhere) {
    move(place, due);
  } else if (root_free_) {
    root_free_ = false;
    sink(kRoot, due);
  } else {
    rise(++size_, due);
  }
  if (!serving_ && heap_[kRoot].rank() == alarm.rank_) wake_at(due.at);
}

void Alarm::arm(Duration at) { agenda_.arm(*this, agenda_.due_of(*this, at)); }

void Alarm::arm_by(Duration at) {
  if (!armed() || at < agenda_.heap_[agenda_.places_[rank_]].at) arm(at);
}

void Agenda::disarm(Alarm& alarm) {
  const auto place = std::exchange(places_[alarm.rank_], kNowhere);
  if (place != kNowhere) remove(place);
}

void Agenda::remove(std::size_t place) {
  const auto last = std::exchange(heap_[size_], kNothing);
  if (place != size_--) move(place, last);
}

// --- The process. Alarms up to the kernel's present time are always served; later ones only before the kernel's next
// event.
Duration Agenda::limit() const {
  const auto ahead = std::max(kernel_now() + kTick, std::min(horizon_, next_in_kernel()));
  return server_ == nullptr ? ahead : std::min(ahead, until_.at + kTick);
}

// Handles the requests. False: the kernel must run.
bool Agenda::goes_on() {
  if ((requests_.load(std::memory_order_relaxed) & kInterrupt) != 0) {
    requests_.fetch_and(std::uint8_t(~kInterrupt), std::memory_order_relaxed);
    if (on_interrupt) on_interrupt();
  }
  return (requests_.load(std::memory_order_relaxed) & kYield) == 0;
}

// The entry of the alarm that is served stays at the root, for the next armed alarm to replace. Until then the entry
// blocks no other alarm, since all others are later.
void Agenda::serve_alarms() {
  serving_ = true;
  limit_ = limit();
  const auto kernel = kernel_now();
  for (;;) {
    if (requests_.load(std::memory_order_relaxed) != 0 && !goes_on()) break;
    const auto due = heap_[kRoot];
    if (due.at >= limit_) break;
    if (due.round() >= kThreads && server_ != nullptr && until_.before(due)) break;
    ahead_ = due.at;
    round_ = due.round();
    if (!may_wait_) known_now_ = std::max(kernel, due.at);
    ++served_;
    places_[due.rank()] = kNowhere;
    root_free_ = true;
    alarms_[due.rank()]->action_();
    if (root_free_) {
      root_free_ = false;
      remove(kRoot);
    }
    if (next_ != nullptr) break;
  }
  serving_ = false;
}

void Agenda::serve() {
  wake_at_ = kNever;
  requests_.fetch_and(std::uint8_t(~kYield), std::memory_order_relaxed);
  serve_alarms();
  if (next_ == nullptr) return release();
  held_ = true;
}

void Agenda::serve_for_ever() {
  for (;;) {
    sc_core::wait(wake_);
    serve();
    idle_.notify();
  }
}

void Agenda::await_idle() {
  while (serving_ && sc_core::sc_get_current_process_handle() != process_) sc_core::wait(idle_);
}

Duration Agenda::ask_now() { return current_ == nullptr ? kernel_now() : std::max(kernel_now(), current_->ahead_); }

// Lets the kernel's time catch up with the agenda, also when no alarm is left.
void Agenda::release() {
  held_ = false;
  known_now_ = kNever;
  if (size_ != 0)
    wake_at(heap_[kRoot].at);
  else if (ahead_ > kernel_now())
    wake_at(ahead_);
}

// An earlier call overrides a later one. `at` is in the past if an alarm waited in its action.
void Agenda::wake_at(Duration at) {
  if (held_ || at >= wake_at_) return;
  wake_at_ = at;
  wake_.notify(to_sc_time(std::max(at - kernel_now(), Duration{})));
}

// A thread serves the agenda ahead of the kernel as long as the kernel has no earlier event.
bool Agenda::may_serve(Duration until) {
  if (serving_ || next_ != nullptr) return false;
  if (held_) return true;
  if (until >= horizon_ || next_in_kernel() < std::min(wake_at_, until + kTick)) return false;
  wake_.cancel();
  wake_at_ = kNever;
  held_ = true;
  // Processes that the kernel wakes at this time run before its alarms (a Sleep is an alarm).
  if (sc_core::sc_pending_activity_at_current_time()) return release(), false;
  return true;
}

// Serves the alarms before the thread's turn. True: the turn has come. False: the turn is armed in the agenda, because
// another thread or the kernel comes first.
bool Agenda::pass(Sleep& sleep, Duration until) {
  if (!may_serve(until)) return sleep.alarm_.arm(until), false;
  until_ = due_of(sleep.alarm_, until);
  server_ = &sleep;
  serve_alarms();
  server_ = nullptr;
  const bool yields = (requests_.load(std::memory_order_relaxed) & kYield) != 0;
  // limit_ covers the kernel's later events: a process that adds one calls wake().
  const auto end = until_.at > kernel_now() ? limit_ : std::min(horizon_, next_in_kernel());
  if (next_ != nullptr || yields || until_.at >= end) {
    arm(sleep.alarm_, until_);
    if (next_ == nullptr) release();
    return false;
  }
  ahead_ = until_.at;
  round_ = until_.round();
  if (!may_wait_) known_now_ = std::max(kernel_now(), ahead_);
  return true;
}

void Agenda::put_to_sleep(Sleep& sleep, Duration until) {
  if (pass(sleep, until)) return;
  sc_core::wait(sleep.ended_);
  next_ = nullptr;
}

void Agenda::end_sleep(Sleep& sleep, Duration at) {
  if (next_ == &sleep) return;
  if (server_ != &sleep) return sleep.alarm_.arm_by(at);
  if (at >= until_.at) return;
  until_ = due_of(sleep.alarm_, at);
  limit_ = std::min(limit_, until_.at + kTick);
}

// The thread continues within this evaluation phase, and holds the agenda.
void Agenda::hand_over(Sleep& sleep) {
  next_ = &sleep;
  sleep.ended_.notify();
}

Sleep::Sleep() : alarm_([this] { alarm_.agenda_.hand_over(*this); }, Agenda::kThreads) {}

void Sleep::until(Duration at) {
  if (at <= Agenda::now()) return;
  asleep_ = true;
  alarm_.agenda_.put_to_sleep(*this, at);
  asleep_ = false;
}

void Sleep::end(Duration at) {
  if (asleep_) alarm_.agenda_.end_sleep(*this, at);
}

}  // namespace rnicsim

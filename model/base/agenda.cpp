#include "model/base/agenda.h"

#include <algorithm>

#include "model/base/kernel.h"

namespace rnicsim {
namespace {

constexpr Duration kTick{1};
// What an alarm calls in a foreign platform is not ours to know.
constexpr int kThreadStackBytes = 1 << 20;

}  // namespace

Alarm::Alarm(Action action) : agenda_(Agenda::made()), action_(std::move(action)), rank_(agenda_.admit(*this)) {}

Alarm::~Alarm() {
  agenda_.disarm(*this);
  agenda_.leave();
}

void Alarm::arm(Duration at) { agenda_.arm(*this, at); }

void Alarm::arm_by(Duration at) {
  if (!armed() || at < agenda_.heap_[agenda_.places_[rank_]].at) arm(at);
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
  for (const auto& due : heap_)
    if (alarms_[due.rank]->armed()) next = std::min(next, due.at);
  return next;
}

Duration Agenda::next_in_kernel() {
  if (sc_core::sc_pending_activity_at_current_time()) return kernel_now();
  if (!sc_core::sc_pending_activity_at_future_time()) return kNever;
  return kernel_now() + Duration{static_cast<std::int64_t>(sc_core::sc_time_to_pending_activity().value())};
}

// --- The heap: a binary one, whose entries know their places.
std::uint32_t Agenda::admit(Alarm& alarm) {
  alarms_.push_back(&alarm);
  places_.push_back(kNowhere);
  return static_cast<std::uint32_t>(alarms_.size() - 1);
}

void Agenda::put(std::uint32_t place, const Due& due) {
  heap_[place] = due;
  places_[due.rank] = place;
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
  const auto size = static_cast<std::uint32_t>(heap_.size());
  for (;;) {
    auto child = 2 * place + 1;
    if (child >= size) break;
    if (child + 1 < size && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(due)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, due);
}

void Agenda::move(std::uint32_t place, const Due& due) {
  place != 0 && due.before(heap_[(place - 1) / 2]) ? rise(place, due) : sink(place, due);
}

void Agenda::arm(Alarm& alarm, Duration at) {
  at = std::max(at, now());
  const Due due{at, alarm.rank_, serving_ && at == ahead_ ? round_ + 1 : 0};
  alarm.served_ = false;
  auto place = places_[alarm.rank_];
  if (place == kNowhere) {
    place = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back(due);
  }
  move(place, due);
  if (!serving_ && heap_.front().rank == alarm.rank_) wake_at(at);
}

void Agenda::disarm(Alarm& alarm) {
  const auto place = std::exchange(places_[alarm.rank_], kNowhere);
  if (place == kNowhere) return;
  alarm.served_ = false;
  if (serving_alarm_ == &alarm) serving_alarm_ = nullptr;
  const auto last = heap_.back();
  heap_.pop_back();
  if (place != heap_.size()) move(place, last);
}

// --- The process. Alarms of the kernel's own time are always served, later ones before what the kernel has to do.
Duration Agenda::limit() const {
  const auto ahead = std::max(kernel_now() + kTick, std::min(horizon_, next_in_kernel()));
  return until_ == nullptr ? ahead : std::min(ahead, *until_ + kTick);
}

// Something was asked for. False: the kernel gets to do its part.
bool Agenda::goes_on() {
  if ((requests_.load(std::memory_order_relaxed) & kInterrupt) != 0) {
    requests_.fetch_and(std::uint8_t(~kInterrupt), std::memory_order_relaxed);
    if (on_interrupt) on_interrupt();
  }
  return (requests_.load(std::memory_order_relaxed) & kYield) == 0;
}

// An alarm stays at the root while it is served: it is armed again more often than not.
void Agenda::serve_alarms() {
  serving_ = true;
  limit_ = limit();
  const auto kernel = kernel_now();
  for (;;) {
    if (requests_.load(std::memory_order_relaxed) != 0 && !goes_on()) break;
    if (heap_.empty() || heap_.front().at >= limit_) break;
    auto& alarm = *alarms_[heap_.front().rank];
    ahead_ = heap_.front().at;
    round_ = heap_.front().round;
    if (!may_wait_) known_now_ = std::max(kernel, ahead_);
    ++served_;
    alarm.served_ = true;
    serving_alarm_ = &alarm;
    alarm.action_();
    if (serving_alarm_ != nullptr && alarm.served_) disarm(alarm);
  }
  serving_ = false;
}

void Agenda::serve() {
  wake_at_ = kNever;
  requests_.fetch_and(std::uint8_t(~kYield), std::memory_order_relaxed);
  serve_alarms();
  release();
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

Duration Agenda::ask_now() {
  return current_ == nullptr ? kernel_now() : std::max(kernel_now(), current_->ahead_);
}

// The kernel follows, even when nothing is left.
void Agenda::release() {
  held_ = false;
  known_now_ = kNever;
  if (!heap_.empty())
    wake_at(heap_.front().at);
  else if (ahead_ > kernel_now())
    wake_at(ahead_);
}

// An earlier call overrides a later one. What is overdue has waited for an alarm that waited.
void Agenda::wake_at(Duration at) {
  if (held_ || at >= wake_at_) return;
  wake_at_ = at;
  wake_.notify(to_sc_time(std::max(at - kernel_now(), Duration{})));
}

// Serves what is to come until then, which may come nearer meanwhile: alarms of that very time too, as the kernel would
// before the thread. False: the kernel has something to do before, and the thread is to wait in it.
bool Agenda::pass(const Duration& until) {
  if (!held_) {
    if (until >= horizon_ || next_in_kernel() < std::min(wake_at_, until + kTick)) return false;
    wake_.cancel();
    wake_at_ = kNever;
    held_ = true;
    // Threads that are to go on at this very time do so before its alarms.
    if (sc_core::sc_pending_activity_at_current_time()) return release(), false;
  }
  until_ = &until;
  serve_alarms();
  until_ = nullptr;
  if ((requests_.load(std::memory_order_relaxed) & kYield) != 0 || until >= std::min(horizon_, next_in_kernel())) {
    release();
    return false;
  }
  ahead_ = std::max(ahead_, until);
  if (!may_wait_) known_now_ = std::max(kernel_now(), ahead_);
  return true;
}

void wake(sc_core::sc_event& event, Duration at) {
  event.notify(to_sc_time(at - Agenda::kernel_now()));
  auto* agenda = Agenda::current();
  if (agenda != nullptr && agenda->serving_) agenda->limit_ = agenda->limit();
}

void sleep_until(Duration at) {
  if (at <= now()) return;
  auto* agenda = Agenda::current();
  if (agenda == nullptr || !agenda->pass(at)) sc_core::wait(to_sc_time(at - Agenda::kernel_now()));
}

void sleep_on(const sc_core::sc_event& event) {
  if (auto* agenda = Agenda::current()) agenda->release();
  sc_core::wait(event);
}

void Sleep::until(Duration at) {
  at_ = at;
  asleep_ = ahead_ = true;
  auto* agenda = Agenda::current();
  const bool passed = agenda != nullptr && agenda->pass(at_);
  ahead_ = false;
  if (!passed) {
    sc_core::wait(to_sc_time(at_ - Agenda::kernel_now()), ended_);
    ended_.cancel();  // what ends this sleep at its last moment is not to end the next one
  }
  asleep_ = false;
}

void Sleep::end(Duration at) {
  if (!asleep_) return;
  if (!ahead_) return wake(ended_, at);
  at_ = std::min(at_, at);
  auto* agenda = Agenda::current();
  agenda->limit_ = agenda->limit();
}

// As long as it lives.
struct Agenda::Horizon {
  explicit Horizon(Duration at) {
    if (current_ != nullptr) current_->horizon_ = at;
  }
  ~Horizon() {
    if (current_ != nullptr) current_->horizon_ = {};
  }
  Horizon(const Horizon&) = delete;
  Horizon& operator=(const Horizon&) = delete;
};

void pause_run() {
  if (auto* agenda = Agenda::current()) agenda->yield();
  sc_core::sc_pause();
}

void run_until(Duration at) {
  const Agenda::Horizon horizon(at);
  sc_core::sc_start(to_sc_time(at - Agenda::kernel_now()));
}

void run_on(Duration limit) {
  const Agenda::Horizon horizon(limit);
  if (limit == Agenda::kNever) return sc_core::sc_start();
  sc_core::sc_start(to_sc_time(limit - Agenda::kernel_now()), sc_core::SC_EXIT_ON_STARVATION);
  // It ends at the last thing before, too, when there is more to come behind.
  const Duration next = Agenda::next_in_kernel();
  if (sc_core::sc_get_status() != sc_core::SC_STOPPED && next > limit && next != Agenda::kNever)
    sc_core::sc_start(to_sc_time(limit - Agenda::kernel_now()));
}

}  // namespace rnicsim

#include "model/nic/timer_unit.h"

namespace rnicsim::nic {

TimerUnit::TimerUnit(sc_core::sc_module_name name) : sc_module(name) {
  SC_HAS_PROCESS(TimerUnit);
  SC_METHOD(look);
  sensitive << queue_.event();
  dont_initialize();
}

TimerUnit::Timer& TimerUnit::timer(Qpn qpn, std::uint32_t kind) {
  if (kind >= timers_.size()) timers_.resize(kind + 1);
  auto& of_kind = timers_[kind];
  if (qpn.value >= of_kind.size()) of_kind.resize(qpn.value + 1);
  return of_kind[qpn.value];
}

void TimerUnit::arm(const TimerArm& request) {
  auto& timer = this->timer(request.qpn, request.kind);
  if (request.cancel) return timer.deadline.reset();
  timer.deadline = now() + request.after;
  if (timer.event && *timer.event <= *timer.deadline) return;
  timer.event = timer.deadline;
  queue_.push(*timer.deadline, {request.qpn, request.kind});
}

bool TimerUnit::armed(Qpn qpn, std::uint32_t kind) const {
  return kind < timers_.size() && qpn.value < timers_[kind].size() && timers_[kind][qpn.value].deadline.has_value();
}

void TimerUnit::reset() {
  timers_.clear();
  queue_.clear();
}

void TimerUnit::look() {
  Look due;
  while (queue_.pop_due(due)) {
    auto& timer = this->timer(due.qpn, due.kind);
    if (timer.event != now()) continue;
    timer.event.reset();
    if (!timer.deadline) continue;
    if (*timer.deadline > now()) {
      timer.event = timer.deadline;
      queue_.push(*timer.deadline, due);
    } else {
      timer.deadline.reset();
      expired({due.qpn, due.kind});
    }
  }
}

}  // namespace rnicsim::nic

#include "model/nic/timer_unit.h"

namespace rnicsim::nic {

TimerUnit::TimerUnit(sc_core::sc_module_name name) : sc_module(name) {
  SC_HAS_PROCESS(TimerUnit);
  SC_METHOD(look);
  sensitive << queue_.event();
  dont_initialize();
}

void TimerUnit::arm(const TimerArm& request) {
  const auto id = key(request.qpn, request.kind);
  if (request.cancel) {
    if (const auto timer = timers_.find(id); timer != timers_.end()) timer->second.deadline.reset();
    return;
  }
  auto& timer = timers_[id];
  timer.deadline = now() + request.after;
  if (timer.event && *timer.event <= *timer.deadline) return;
  timer.event = timer.deadline;
  queue_.push(*timer.deadline, id);
}

bool TimerUnit::armed(Qpn qpn, std::uint32_t kind) const {
  const auto found = timers_.find(key(qpn, kind));
  return found != timers_.end() && found->second.deadline;
}

void TimerUnit::reset() {
  timers_.clear();
  queue_.clear();
}

void TimerUnit::look() {
  std::uint64_t id;
  while (queue_.pop_due(id)) {
    const auto found = timers_.find(id);
    if (found == timers_.end() || found->second.event != now()) continue;
    auto& timer = found->second;
    timer.event.reset();
    if (!timer.deadline) {
      timers_.erase(found);
    } else if (*timer.deadline > now()) {
      timer.event = timer.deadline;
      queue_.push(*timer.deadline, id);
    } else {
      timers_.erase(found);
      expired({{static_cast<std::uint32_t>(id)}, static_cast<std::uint32_t>(id >> 32)});
    }
  }
}

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/timer_unit.h"

namespace rnicsim::nic {

TimerUnit::TimerUnit(sc_core::sc_module_name name) : sc_module(name) {}

LazyTimer& TimerUnit::timer(Qpn qpn, std::uint32_t kind) {
  if (kind >= timers_.size()) timers_.resize(kind + 1);
  auto& of_kind = timers_[kind];
  if (qpn.value >= of_kind.size()) of_kind.resize(qpn.value + 1);
  return of_kind[qpn.value];
}

void TimerUnit::arm(const TimerArm& request) {
  auto& timer = this->timer(request.qpn, request.kind);
  if (request.cancel) return timer.cancel();
  queue_.arm(timer, {request.qpn, request.kind}, now() + request.after);
}

bool TimerUnit::armed(Qpn qpn, std::uint32_t kind) const {
  return kind < timers_.size() && qpn.value < timers_[kind].size() && timers_[kind][qpn.value].armed();
}

void TimerUnit::reset() {
  timers_.clear();
  queue_.clear();
}

void TimerUnit::look() {
  queue_.look([this](const Look& due) { return &timer(due.qpn, due.kind); },
              [this](const Look& due) {
                expired({due.qpn, due.kind});
              });
}

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/loopback.h"

#include <algorithm>

namespace rnicsim::nic {

Loopback::Loopback(sc_core::sc_module_name name, const LoopbackParams& params) : sc_module(name), params_(params) {}

void Loopback::send(Frame&& frame, Duration ready, Looped how) {
  const auto begins = std::max(now() + ready, free_);
  if (how == Looped::alone) scheduled({frame.id(), begins});
  free_ = begins + params_.rate.time_for({frame.size()});
  leaving_.push(free_, {std::move(frame), how});
}

void Loopback::reset() {
  leaving_.clear();
  free_ = now();
}

void Loopback::leave_due() {
  Leaving leaving;
  while (leaving_.pop_due(leaving)) {
    ++counters_.frames;
    counters_.bytes += leaving.frame.size();
    const auto id = leaving.frame.id();
    sent(leaving.frame);
    frame_out(std::move(leaving.frame), params_.latency);
    if (leaving.how == Looped::alone) left(id);
  }
}

}  // namespace rnicsim::nic

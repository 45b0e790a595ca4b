#include "model/nic/port.h"

#include <algorithm>

namespace rnicsim::nic {

Port::Port(sc_core::sc_module_name name, const PortParams& params) : sc_module(name), params_(params) {}

Duration Port::time_for(const Frame& frame) const {
  return params_.rate.time_for(
      {std::max<std::uint64_t>(frame.size(), params_.least_frame.bytes) + params_.overhead.bytes});
}

void Port::send(Frame&& frame, Duration ready) {
  const auto wanted = now() + ready;
  const auto begins = std::max(wanted, free_);
  scheduled({frame.id(), begins});
  counters_.tx_wait_ps += static_cast<Counter>((begins - wanted).ps);
  free_ = begins + time_for(frame);
  leaving_.push(free_, std::move(frame));
}

void Port::receive(Frame&& frame, Duration delay) {
  ++counters_.rx_frames;
  counters_.rx_bytes += frame.size();
  received({frame.size(), delay});
  frame_in(std::move(frame), delay);
}

void Port::reset() {
  leaving_.clear();
  free_ = now();
}

void Port::leave_due() {
  Frame frame;
  while (leaving_.pop_due(frame)) {
    ++counters_.tx_frames;
    counters_.tx_bytes += frame.size();
    counters_.tx_busy_ps += static_cast<Counter>(time_for(frame).ps);
    const auto id = frame.id();
    sent(frame);
    frame_out(std::move(frame));
    left(id);
  }
}

}  // namespace rnicsim::nic

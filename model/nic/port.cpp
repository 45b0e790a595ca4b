#include "model/nic/port.h"

#include <algorithm>

namespace rnicsim::nic {

Port::Port(sc_core::sc_module_name name, const PortParams& params) : sc_module(name), params_(params) {
  SC_HAS_PROCESS(Port);
  SC_METHOD(leave_due);
  sensitive << queue_.event();
  dont_initialize();
}

void Port::send(Frame frame) {
  const auto bytes = std::max<std::uint64_t>(frame.size(), params_.least_frame.bytes) + params_.overhead.bytes;
  free_ = std::max(now(), free_) + params_.rate.time_for({bytes});
  leaving_.push_back(std::move(frame));
  queue_.push(free_, 0);
}

void Port::receive(Frame frame) {
  ++counters_.rx_frames;
  counters_.rx_bytes += frame.size();
  received(frame);
  frame_in(std::move(frame));
}

void Port::reset() {
  leaving_.clear();
  queue_.clear();
  free_ = now();
}

void Port::leave_due() {
  char due;
  while (queue_.pop_due(due)) {
    auto frame = std::move(leaving_.front());
    leaving_.pop_front();
    ++counters_.tx_frames;
    counters_.tx_bytes += frame.size();
    sent(frame);
    frame_out(std::move(frame));
    credit(1u);
  }
}

}  // namespace rnicsim::nic

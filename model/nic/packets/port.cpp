#include "model/nic/packets/port.h"

#include "model/base/pause_frame.h"
#include "model/base/policy.h"
#include "model/base/policy_params.h"

namespace rnicsim::nic {

Port::Port(sc_core::sc_module_name name, const PortParams& params)
    : sc_module(name),
      params_(params),
      timing_(params.timing()),
      rate_(timing_.rate),
      priorities_(params.priorities()),
      leaving_([this] { leave_due(); }, TransmitPort::kUnlimited, 0,
               make_policy<QueueDiscipline>(params.scheduler.name, params.scheduler.params(params.scheduler.name))) {}

void Port::send(Frame&& frame, Duration ready) {
  const auto took = rate_.time_for(timing_.bytes_for(frame));
  const auto priority = priorities_.of(frame);
  leaving_.send(std::move(frame), now() + ready, took, priority);
}

void Port::receive(Frame&& frame, Duration delay) {
  ++counters_.rx_frames;
  counters_.rx_bytes += frame.size();
  if (received) received({frame.size(), delay});
  if (is_mac_control(frame)) return controls_.push(now() + delay, std::move(frame));
  frame_in(std::move(frame), delay);
}

void Port::send_control(Frame&& frame) {
  const auto took = rate_.time_for(timing_.bytes_for(frame));
  leaving_.send(std::move(frame), now(), took, TransmitPort::kControl);
}

void Port::reset() {
  leaving_.clear();
  controls_.clear();
}

void Port::leave_due() {
  TransmitPort::Departure leaving;
  while (leaving_.pop_due(leaving)) {
    auto& frame = leaving.frame;
    ++counters_.tx_frames;
    counters_.tx_bytes += frame.size();
    counters_.tx_busy_ps += static_cast<Counter>(leaving.took.ps);
    counters_.tx_wait_ps += static_cast<Counter>(leaving.waited().ps);
    const auto id = frame.id();
    if (scheduled) scheduled({id, leaving.began});
    sent(frame);
    frame_out(std::move(frame));
    if (leaving.priority != TransmitPort::kControl) left(id);
  }
}

void Port::control_due() {
  Frame frame;
  while (controls_.pop_due(frame)) {
    const auto pause = priority_pause_of(frame);
    if (!pause) continue;
    ++counters_.rx_pause;
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
      if ((pause->enabled & params_.pfc) >> priority & 1)
        leaving_.pause(priority, now() + pause->time(priority, timing_.rate));
  }
}

PortCounters Port::counters() const {
  auto counters = counters_;
  counters.tx_paused_ps = leaving_.paused_ps();
  counters.tx_most_bytes = leaving_.most_bytes();
  return counters;
}

}  // namespace rnicsim::nic

#include "model/fabric/ingress_buffer.h"

namespace rnicsim::fabric {

IngressBuffer::IngressBuffer(const PfcParams& params, const std::vector<BitRate>& rates) : params_(params) {
  if (params_.priorities == 0) return;
  held_.resize(rates.size());
  for (const auto rate : rates)
    half_pauses_.push_back(rate.time_for({params_.quanta / 2 * PriorityPause::kQuantumBytes}));
}

bool IngressBuffer::hold(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes) {
  auto& held = held_[port][priority];
  if (held.bytes + bytes > params_.xoff.bytes + params_.headroom.bytes) return false;
  held.bytes += bytes;
  if (!held.stopped && held.bytes >= params_.xoff.bytes) {
    held.stopped = true;
    held.since = now();
    ++held.stops;
    stop(port, priority);
  }
  return true;
}

void IngressBuffer::let_go(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes) {
  auto& held = held_[port][priority];
  held.bytes -= bytes;
  if (!held.stopped || held.bytes > params_.xon.bytes) return;
  held.stopped_ps = stopped_ps(port, priority);
  held.stopped = false;
  tell(port, priority, 0);
}

Counter IngressBuffer::stopped_ps(std::uint32_t port, std::uint8_t priority) const {
  if (held_.empty()) return 0;
  const auto& held = held_[port][priority];
  return held.stopped_ps + (held.stopped ? static_cast<Counter>((now() - held.since).ps) : 0);
}

std::optional<StoppedBuffer> IngressBuffer::stopped(std::uint32_t port, std::uint8_t priority) const {
  if (held_.empty() || !held_[port][priority].stopped) return std::nullopt;
  const auto& held = held_[port][priority];
  return StoppedBuffer{port, priority, held.bytes, params_.xon.bytes, held.since};
}

void IngressBuffer::tell(std::uint32_t port, std::uint8_t priority, std::uint32_t quanta) {
  PriorityPause told{.enabled = static_cast<std::uint8_t>(1u << priority)};
  told.quanta[priority] = static_cast<std::uint16_t>(quanta);
  pause(port, std::move(told));
}

void IngressBuffer::stop(std::uint32_t port, std::uint8_t priority) {
  refreshes_.push(now() + half_pauses_[port], {port, held_[port][priority].stops, priority});
  tell(port, priority, params_.quanta);
}

void IngressBuffer::refresh_due() {
  Refresh due;
  while (refreshes_.pop_due(due)) {
    const auto& held = held_[due.port][due.priority];
    if (held.stopped && held.stops == due.stops) stop(due.port, due.priority);
  }
}

}  // namespace rnicsim::fabric

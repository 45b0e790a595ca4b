// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/ingress_buffer.h"

#include <algorithm>

namespace rnicsim::fabric {

IngressBuffer::IngressBuffer(const PfcParams& params, const std::vector<BitRate>& rates, SharedBuffer& memory)
    : params_(params), memory_(memory) {
  if (params_.priorities == 0) return;
  held_.resize(rates.size());
  for (const auto rate : rates)
    half_pauses_.push_back(rate.time_for({params_.quanta / 2 * PriorityPause::kQuantumBytes}));
}

bool IngressBuffer::hold(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes) {
  auto& held = held_[port][priority];
  const bool fits = memory_.take_lossless(held.use, bytes);
  held.most = std::max<Counter>(held.most, held.use.total());
  // Other buffers may use up the headroom: then a frame is lost although this buffer has no headroom, and the sender
  // must still pause.
  if (!held.stopped && (!fits || memory_.is_over(held.use))) {
    held.stopped = true;
    held.since = now();
    ++held.stops;
    stopped_.emplace(port, priority);
    stop(port, priority);
  }
  return fits;
}

void IngressBuffer::let_go(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes) {
  auto& held = held_[port][priority];
  memory_.give_back(held.use, bytes);
  if (memory_.counts_lossy())
    look();
  else if (held.stopped && may_go_on(port, priority))
    stopped_.erase({port, priority});
}

void IngressBuffer::look() {
  if (stopped_.empty()) return;
  std::erase_if(stopped_, [this](const auto& buffer) { return may_go_on(buffer.first, buffer.second); });
}

// True: the sender may resume and was notified.
bool IngressBuffer::may_go_on(std::uint32_t port, std::uint8_t priority) {
  auto& held = held_[port][priority];
  if (!memory_.may_go_on(held.use)) return false;
  held.stopped_ps = stopped_ps(port, priority);
  held.stopped = false;
  tell(port, priority, 0);
  return true;
}

Counter IngressBuffer::stopped_ps(std::uint32_t port, std::uint8_t priority) const {
  if (held_.empty()) return 0;
  const auto& held = held_[port][priority];
  return held.stopped_ps + (held.stopped ? static_cast<Counter>((now() - held.since).ps) : 0);
}

std::optional<StoppedBuffer> IngressBuffer::stopped(std::uint32_t port, std::uint8_t priority) const {
  if (held_.empty() || !held_[port][priority].stopped) return std::nullopt;
  const auto& held = held_[port][priority];
  return StoppedBuffer{port, priority, held.use.total(), memory_.resume_at(), held.since};
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
    if (!held.stopped || held.stops != due.stops) continue;
    if (may_go_on(due.port, due.priority))
      stopped_.erase({due.port, due.priority});
    else
      stop(due.port, due.priority);
  }
}

}  // namespace rnicsim::fabric

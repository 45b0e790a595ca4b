// SPDX-License-Identifier: Apache-2.0
#include "model/base/ports/transmit_port.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace rnicsim {

void TransmitPort::send(Frame&& frame, Duration from, Duration took, std::uint8_t priority, std::uint32_t origin) {
  const auto bytes = frame.size();
  ++frames_;
  bytes_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_);
  bytes_of_[priority] += bytes;
  most_bytes_of_[priority] = std::max<Counter>(most_bytes_of_[priority], bytes_of_[priority]);
  if (counts(priority)) counted_bytes_ += bytes;
  if (next_ != kNone && next_begins_ <= now()) bytes_later_ += bytes;
  auto& queue = queues_[priority];
  const bool first = queue.empty();
  auto& waiting = queue.add_back();
  waiting.frame = std::move(frame);
  waiting.from = from;
  waiting.took = took;
  waiting.origin = origin;
  filled_ |= static_cast<std::uint16_t>(1u << priority);
  if (first) choose_anew();
}

void TransmitPort::pop(Departure& departure) {
  auto& queue = queues_[next_];
  auto& leaving = queue.front();
  departure.frame = std::move(leaving.frame);
  departure.wanted = leaving.from;
  departure.began = next_begins_;
  departure.took = leaving.took;
  departure.origin = leaving.origin;
  departure.priority = next_;
  queue.pop_front();
  if (queue.empty()) filled_ &= static_cast<std::uint16_t>(~(1u << next_));
  forget(next_, departure.frame);
  departure.behind = bytes_ - std::min<std::uint64_t>(bytes_, std::exchange(bytes_later_, 0));
  if (discipline_ && next_ != kControl) discipline_->left(queue.empty());
  free_ = next_ends_;
  filled_ != 0 ? choose() : void(next_ = kNone);
}

void TransmitPort::forget(std::uint8_t queue, const Frame& frame) {
  const auto bytes = frame.size();
  --frames_;
  bytes_ -= bytes;
  bytes_of_[queue] -= bytes;
  if (counts(queue)) counted_bytes_ -= bytes;
}

// Chooses the next queue: among the queues whose first frame may leave at the earliest time, the highest priority, or
// the one that the discipline chooses.
void TransmitPort::choose() {
  next_ = kNone;
  if (filled_ == 0) return;
  auto chosen = static_cast<std::uint8_t>(std::bit_width(filled_) - 1);
  auto begins = may_begin(chosen);
  if ((filled_ & (filled_ - 1)) != 0) {
    for (unsigned rest = filled_; rest != 0; rest &= rest - 1)
      begins = std::min(begins, may_begin(static_cast<std::size_t>(std::countr_zero(rest))));
    begins = std::max(begins, free_);
    while ((filled_ >> chosen & 1) == 0 || may_begin(chosen) > begins) --chosen;
  }
  if (discipline_ && chosen != kControl) chosen = choose_by_discipline(begins);
  next_ = chosen;
  next_begins_ = std::max(begins, free_);
  next_ends_ = next_begins_ + queues_[chosen].front().took;
}

std::uint8_t TransmitPort::choose_by_discipline(Duration begins) {
  QueueDiscipline::Ready ready;
  for (unsigned rest = filled_; rest != 0; rest &= rest - 1) {
    const auto queue = static_cast<std::size_t>(std::countr_zero(rest));
    if (queue == kControl || may_begin(queue) > begins) continue;
    ready.queues |= 1u << queue;
    ready.bytes[queue] = queues_[queue].front().frame.size();
  }
  return discipline_->choose(ready);
}

// Repeats the choice unless the first bit of the chosen frame is sent.
void TransmitPort::choose_anew() {
  if (next_ != kNone && next_begins_ <= now()) return;
  choose();
  if (next_ != kNone && !popping_) alarm_.arm(next_ends_);
}

void TransmitPort::pause(std::uint8_t priority, Duration until) {
  paused_ps_of_[priority] += pause_so_far(priority);
  paused_since_[priority] = now();
  not_before_[priority] = until;
  choose_anew();
}

Counter TransmitPort::pause_so_far(std::size_t priority) const {
  const auto end = std::min(now(), not_before_[priority]);
  return end > paused_since_[priority] ? static_cast<Counter>((end - paused_since_[priority]).ps) : 0;
}

Counter TransmitPort::paused_ps() const {
  Counter paused = 0;
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority) paused += paused_ps(priority);
  return paused;
}

std::vector<TransmitPort::Dropped> TransmitPort::drop_waiting(std::uint8_t priority) {
  std::vector<Dropped> dropped;
  auto& queue = queues_[priority];
  const bool leaving = next_ == priority && next_begins_ <= now();
  while (queue.size() > (leaving ? 1u : 0u)) {
    auto& waiting = queue.back();
    forget(priority, waiting.frame);
    dropped.push_back({std::move(waiting.frame), waiting.origin});
    queue.pop_back();
  }
  if (leaving) return dropped;
  filled_ &= static_cast<std::uint16_t>(~(1u << priority));
  if (discipline_) discipline_->emptied(priority);
  if (next_ == priority) next_ = kNone;
  choose_anew();
  return dropped;
}

void TransmitPort::clear() {
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority) pause(priority, now());
  for (auto& queue : queues_) queue.clear();
  alarm_.disarm();
  next_ = kNone;
  filled_ = 0;
  if (discipline_) discipline_->reset();
  free_ = now();
  frames_ = 0;
  bytes_ = counted_bytes_ = 0;
  bytes_later_ = 0;
  bytes_of_ = {};
}

}  // namespace rnicsim

// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/event_writer.h"

#include <utility>

namespace rnicsim::nic {
namespace {

bool has_room(const EventQueueContext& queue) {
  return ((queue.producer - queue.consumer) & kCounterMask) < 1u << queue.log_entries;
}

}  // namespace

void EventWriter::write(std::uint32_t eqn, EventType type, std::uint32_t number) {
  contexts_.eqs.lookup(eqn, [=, this](EventQueueContext* queue) { take(eqn, queue, {type, number}); });
}

void EventWriter::take(std::uint32_t eqn, EventQueueContext* queue, const Event& event) {
  if (queue == nullptr) {
    ++counters_.eq_overruns;
    return lost({eqn, event.type, event.number});
  }
  if (held_.contains(eqn) || !has_room(*queue)) return held_[eqn].push_back(event);
  put(eqn, *queue, event);
  // One interrupt, then none until the driver arms the queue again.
  if (std::exchange(queue->armed, false)) interrupt(queue->vector);
}

void EventWriter::put(std::uint32_t eqn, EventQueueContext& queue, const Event& event) {
  const auto at = queue.producer & ((1u << queue.log_entries) - 1);
  Payload entry(personality_.layout.eqe);
  personality_.encode(event.type, event.number, (queue.producer >> queue.log_entries & 1) != 0, entry.writable());
  dma_.write(queue.pasid, queue.ring + std::uint64_t{at} * personality_.layout.eqe, std::move(entry),
             dma_.closure([this](AccessResult written, const Payload&) {
               if (written != AccessResult::ok) pcie_.internal_error(HealthSyndrome::event_queue_access);
             }));
  queue.producer = (queue.producer + 1) & kCounterMask;
  ++counters_.events;
  written({eqn, event.type, event.number});
}

void EventWriter::put_held(std::uint32_t eqn, EventQueueContext& queue) {
  const auto held = held_.find(eqn);
  if (held == held_.end()) return;
  for (auto& events = held->second; !events.empty() && has_room(queue); events.pop_front())
    put(eqn, queue, events.front());
  if (held->second.empty()) held_.erase(held);
}

void EventWriter::arm(std::uint32_t eqn, std::uint32_t consumer) {
  contexts_.eqs.lookup(eqn, [this, eqn, consumer](EventQueueContext* queue) {
    if (queue == nullptr) return;
    queue->consumer = consumer & kCounterMask;
    put_held(eqn, *queue);
    queue->armed = queue->consumer == queue->producer;
    if (!queue->armed) interrupt(queue->vector);
  });
}

void EventWriter::interrupt(std::uint32_t vector) {
  const auto message = pcie_.interrupt(vector);
  if (!message) return;
  const auto data = message->data;
  dma_.write(kKernelPasid, message->address, Payload::copy_of(std::as_bytes(std::span(&data, 1))));
}

}  // namespace rnicsim::nic

#include "model/nic/event_writer.h"

namespace rnicsim::nic {

void EventWriter::write(std::uint32_t eqn, abi::EventType type, std::uint32_t number) {
  contexts_.eqs.lookup(eqn, [=, this](EventQueueContext* queue) { write(eqn, queue, type, number); });
}

void EventWriter::write(std::uint32_t eqn, EventQueueContext* queue, abi::EventType type, std::uint32_t number) {
  const bool room = queue != nullptr && ((queue->producer - queue->consumer) & kCounterMask) < 1u << queue->log_entries;
  if (!room) {
    ++counters_.eq_overruns;
    lost({eqn, type, number});
    return;
  }
  const auto at = queue->producer & ((1u << queue->log_entries) - 1);
  abi::Eqe entry;
  entry.type = type;
  entry.number = number;
  entry.owner = queue->producer >> queue->log_entries & 1;
  dma_.write(queue->pasid, queue->ring + std::uint64_t{at} * sizeof(entry),
             Payload::copy_of(std::as_bytes(std::span(&entry, 1))), nullptr);
  queue->producer = (queue->producer + 1) & kCounterMask;
  ++counters_.events;
  written({eqn, type, number});
  // One interrupt, then none until the driver has looked.
  if (std::exchange(queue->armed, false)) interrupt(queue->vector);
}

void EventWriter::arm(std::uint32_t eqn, std::uint32_t consumer) {
  contexts_.eqs.lookup(eqn, [this, consumer](EventQueueContext* queue) {
    if (queue == nullptr) return;
    queue->consumer = consumer & kCounterMask;
    queue->armed = queue->consumer == queue->producer;
    if (!queue->armed) interrupt(queue->vector);
  });
}

void EventWriter::interrupt(std::uint32_t vector) {
  const auto message = pcie_.interrupt(vector);
  if (!message) return;
  const auto data = message->data;
  dma_.write(kKernelPasid, message->address, Payload::copy_of(std::as_bytes(std::span(&data, 1))), nullptr);
}

}  // namespace rnicsim::nic

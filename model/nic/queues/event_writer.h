// SPDX-License-Identifier: Apache-2.0
// Event queue entries and their MSI-X messages. Completion events go to the CQ's EQ, all others to EQ 0.
#pragma once

#include <deque>
#include <map>

#include "model/base/trace.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/queues/event_writer_counters.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

struct EventTrace {
  std::uint32_t eqn;
  EventType type;
  std::uint32_t number;
};

class EventWriter {
 public:
  static constexpr std::uint32_t kAsynchronousEqn = 0;

  EventWriter(const Personality& personality, ContextCache& contexts, Dma& dma, PcieEndpoint& pcie)
      : personality_(personality), contexts_(contexts), dma_(dma), pcie_(pcie) {}

  trace::Point<EventTrace> written;  // the entry is on its way to memory
  trace::Point<EventTrace> lost;

  // An event for a full queue is held until the driver has freed space.
  void write(std::uint32_t eqn, EventType type, std::uint32_t number);
  void arm(std::uint32_t eqn, std::uint32_t consumer);
  // Drops held events of a destroyed queue, or of all queues.
  void forget(std::uint32_t eqn) { held_.erase(eqn); }
  void reset() { held_.clear(); }
  void interrupt(std::uint32_t vector);

  const EventCounters& counters() const { return counters_; }

 private:
  struct Event {
    EventType type;
    std::uint32_t number;
  };

  void take(std::uint32_t eqn, EventQueueContext* queue, const Event& event);
  void put(std::uint32_t eqn, EventQueueContext& queue, const Event& event);
  void put_held(std::uint32_t eqn, EventQueueContext& queue);

  const Personality& personality_;
  ContextCache& contexts_;
  Dma& dma_;
  PcieEndpoint& pcie_;
  std::map<std::uint32_t, std::deque<Event>> held_;  // by EQ, of full queues
  EventCounters counters_;
};

}  // namespace rnicsim::nic

// Event queue entries, and the MSI-X messages that announce them. Completion events go to the EQ that their CQ names,
// all others to EQ 0.
#pragma once

#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/nic/context_cache.h"
#include "model/nic/dma.h"
#include "model/nic/pcie_endpoint.h"
#include "model/nic/qp_engine.h"

namespace rnicsim::nic {

struct EventCounters {
  Counter events = 0;
  Counter eq_overruns = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("events", events, "events", "event queue entries written");
    visit.counter("eq_overruns", eq_overruns, "events", "events lost: the event queue was full, or is not there");
  }
};

struct EventTrace {
  std::uint32_t eqn;
  abi::EventType type;
  std::uint32_t number;
};

class EventWriter {
 public:
  static constexpr std::uint32_t kAsynchronousEqn = 0;

  EventWriter(ContextCache& contexts, Dma& dma, PcieEndpoint& pcie) : contexts_(contexts), dma_(dma), pcie_(pcie) {}

  trace::Point<EventTrace> written;       // when the entry is on its way to memory
  trace::Point<EventTrace> lost;

  void write(std::uint32_t eqn, abi::EventType type, std::uint32_t number);
  void arm(std::uint32_t eqn, std::uint32_t consumer);
  void interrupt(std::uint32_t vector);

  const EventCounters& counters() const { return counters_; }

 private:
  void write(std::uint32_t eqn, EventQueueContext* queue, abi::EventType type, std::uint32_t number);

  ContextCache& contexts_;
  Dma& dma_;
  PcieEndpoint& pcie_;
  EventCounters counters_;
};

}  // namespace rnicsim::nic

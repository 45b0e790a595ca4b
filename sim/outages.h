// Links that go down and devices that fail, at the times that fault rules say (docs/faults.md).
#pragma once

#include <functional>
#include <systemc>

#include "model/base/event_queue.h"
#include "sim/config/fault_record.h"

namespace rnicsim::sim {

class Outages : public sc_core::sc_module {
 public:
  explicit Outages(sc_core::sc_module_name name) : sc_module(name) {}

  // At this simulated time; before the simulation starts.
  void at(Duration time, std::function<void()> happens) { due_.push(time, std::move(happens)); }

 private:
  void run_due() {
    std::function<void()> happens;
    while (due_.pop_due(happens)) happens();
  }

  EventQueue<std::function<void()>> due_{[this] { run_due(); }};
};

}  // namespace rnicsim::sim

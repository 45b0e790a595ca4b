// Links that go down and devices that fail, at the times that fault rules say (docs/faults.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <systemc>

#include "model/base/event_queue.h"
#include "sim/config/fault_record.h"

namespace rnicsim::sim {

class Outages : public sc_core::sc_module {
 public:
  explicit Outages(sc_core::sc_module_name name) : sc_module(name) {}

  // At this simulated time; before the simulation starts.
  void at(Duration time, std::function<void()> happens) { due_.push(time, std::move(happens)); }

  // Outages of one interface may overlap: the link is back when the last of them has ended.
  void begin(std::uint32_t interface) { ++under_way_[interface]; }
  bool end(std::uint32_t interface) { return --under_way_[interface] == 0; }

 private:
  void run_due() {
    std::function<void()> happens;
    while (due_.pop_due(happens)) happens();
  }

  std::map<std::uint32_t, std::uint32_t> under_way_;  // outages, by interface
  EventQueue<std::function<void()>> due_{[this] { run_due(); }};
};

}  // namespace rnicsim::sim

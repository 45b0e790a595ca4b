// SPDX-License-Identifier: Apache-2.0
// Link outages and device failures at the times that fault rules set (docs/faults.md).
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

  // Schedules `happens` at a simulated time. Call before the simulation starts.
  void at(Duration time, std::function<void()> happens) { due_.push(time, std::move(happens)); }

  // begin() and end() of one interface's outages, which may overlap. end() returns true when the last outage has ended.
  void begin(std::uint32_t interface) { ++under_way_[interface]; }
  bool end(std::uint32_t interface) { return --under_way_[interface] == 0; }

 private:
  void run_due() {
    std::function<void()> happens;
    while (due_.pop_due(happens)) happens();
  }

  std::map<std::uint32_t, std::uint32_t> under_way_;  // number of present outages of each interface
  EventQueue<std::function<void()>> due_{[this] { run_due(); }};
};

}  // namespace rnicsim::sim

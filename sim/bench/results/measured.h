// SPDX-License-Identifier: Apache-2.0
// State of a run at one time.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/fabric/port_histograms.h"
#include "model/fabric/switch.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim::bench {

struct Snapshot {
  Duration at{};
  std::vector<CounterList> hosts;
  std::vector<CounterList> switches;
  std::vector<std::vector<fabric::SwitchPortCounters>> ports;  // by switch
  // By switch; empty for a switch without switch.histograms.
  std::vector<std::vector<fabric::PortHistograms>> histograms;
  std::vector<double> backlogs;       // Backlog::area_until(at), by flow
  std::vector<Duration> agents_busy;  // working time of each agent's CPU since the run began
  std::uint64_t packets = 0;          // sent by all NICs
  std::uint64_t posted = 0;
  std::uint64_t events = 0;
  double cpu_seconds = 0;
};

}  // namespace rnicsim::sim::bench

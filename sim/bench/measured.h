// What is known of a run at one moment.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/fabric/port_histograms.h"
#include "model/fabric/switch.h"
#include "sim/counter_list.h"

namespace rnicsim::sim::bench {

struct Snapshot {
  Duration at{};
  std::vector<CounterList> hosts;
  std::vector<CounterList> switches;
  std::vector<std::vector<fabric::SwitchPortCounters>> ports;  // by switch
  // By switch; of one without switch.histograms there are none.
  std::vector<std::vector<fabric::PortHistograms>> histograms;
  std::vector<double> backlogs;       // Backlog::area_until(at), by flow
  std::vector<Duration> agents_busy;  // time at work of each agent's CPU, ever
  std::uint64_t packets = 0;          // sent by all NICs
  std::uint64_t posted = 0;
  std::uint64_t events = 0;
  double cpu_seconds = 0;
};

}  // namespace rnicsim::sim::bench

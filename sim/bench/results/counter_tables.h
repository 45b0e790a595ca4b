// SPDX-License-Identifier: Apache-2.0
// Counters of hosts and switches as text tables: a row for each counter, a column for each host or switch. Many hosts
// or switches are summarized, switches by layer of the topology.
#pragma once

#include <string>
#include <vector>

#include "sim/bench/results/results.h"

namespace rnicsim::sim::bench {

// Switches at the same distance from the hosts, for example "edge0" to "edge31".
struct SwitchLayer {
  std::string name;  // "edge"; "layer 2" if the names of the switches have no common stem
  std::vector<std::size_t> switches;
};
// Nearest to the hosts first; switches that reach no host last.
std::vector<SwitchLayer> switch_layers(const Topology& topology);

// Counters that are 0 in all columns have no row. switches_table() is empty if there is no switch.
std::string hosts_table(const BenchResult& result);
std::string switches_table(const BenchResult& result);

}  // namespace rnicsim::sim::bench

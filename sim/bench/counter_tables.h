// The counters of hosts and switches as tables for people: a row a counter, a column each; of many of them a summary,
// of switches by layer of the topology.
#pragma once

#include <string>
#include <vector>

#include "sim/bench/results.h"

namespace rnicsim::sim::bench {

// Switches that are equally far from the hosts, as "edge0" to "edge31".
struct SwitchLayer {
  std::string name;  // "edge"; "layer 2" where the names of the switches have nothing in common
  std::vector<std::size_t> switches;
};
// The nearest to the hosts first; at the end those that reach no host.
std::vector<SwitchLayer> switch_layers(const Topology& topology);

// Empty: there is no switch. Of what never counted anything there is no row.
std::string hosts_table(const BenchResult& result);
std::string switches_table(const BenchResult& result);

}  // namespace rnicsim::sim::bench

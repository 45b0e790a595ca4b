// Which process simulates which node of a topology.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

// By node, as Topology::cables has them: hosts in equal blocks; a switch where most of its neighbours are, those next
// to hosts first. The same wherever it is asked.
std::vector<std::uint32_t> partition(const Topology& topology, std::uint32_t processes);

}  // namespace rnicsim::sim

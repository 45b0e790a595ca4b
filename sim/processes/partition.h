// SPDX-License-Identifier: Apache-2.0
// Assigns the nodes of a topology to processes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

// Process of each node, numbered as in Topology::cables: hosts in equal blocks; a switch to the process of most of its
// neighbours, switches next to hosts first. The same result in each process.
std::vector<std::uint32_t> partition(const Topology& topology, std::uint32_t processes);

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/partition.h"

#include <algorithm>
#include <iterator>

namespace rnicsim::sim {

std::vector<std::uint32_t> partition(const Topology& topology, std::uint32_t processes) {
  constexpr std::uint32_t kNobody = ~0u;
  std::vector<std::uint32_t> owners(topology.nodes(), kNobody);
  const std::uint64_t hosts = topology.hosts();
  for (std::size_t i = 0; i < topology.interfaces.size(); ++i)
    owners[i] = static_cast<std::uint32_t>(topology.interfaces[i].host * std::uint64_t{processes} / hosts);
  std::vector<std::uint32_t> load(processes);  // number of switches
  // Layer by layer from the hosts; at a tie the process with the fewest switches.
  for (bool more = true; more;) {
    more = false;
    std::vector<std::vector<std::uint32_t>> neighbours(topology.nodes());
    for (const auto& [from, to] : topology.cables) {
      if (owners[from] == kNobody && owners[to] != kNobody) neighbours[from].push_back(owners[to]);
      if (owners[to] == kNobody && owners[from] != kNobody) neighbours[to].push_back(owners[from]);
    }
    for (std::size_t node = topology.interfaces.size(); node < topology.nodes(); ++node) {
      if (neighbours[node].empty()) continue;
      std::vector<std::int64_t> votes(processes);
      for (const auto owner : neighbours[node]) ++votes[owner];
      std::uint32_t best = 0;
      for (std::uint32_t i = 1; i < processes; ++i)
        if (votes[i] > votes[best] || (votes[i] == votes[best] && load[i] < load[best])) best = i;
      owners[node] = best;
      ++load[best];
      more = true;
    }
  }
  std::ranges::replace(owners, kNobody, 0u);  // not connected to any host
  return owners;
}

}  // namespace rnicsim::sim

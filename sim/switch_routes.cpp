#include "sim/switch_routes.h"

#include <queue>

namespace rnicsim::sim {

SwitchRoutes::SwitchRoutes(const Topology& topology) : neighbours_(topology.nodes()) {
  for (const auto& [from, to] : topology.cables) {
    neighbours_[from].push_back(to);
    neighbours_[to].push_back(from);
  }
  for (std::uint32_t host = 0; host < topology.hosts.size() && !topology.switches.empty(); ++host) {
    auto& hops = hops_.emplace_back(topology.nodes());
    std::queue<std::uint32_t> next;
    hops[host] = 0;
    for (next.push(host); !next.empty(); next.pop()) {
      const auto node = next.front();
      if (node != host && !topology.is_switch(node)) continue;  // a host forwards nothing
      for (const auto neighbour : neighbours_[node]) {
        if (hops[neighbour]) continue;
        hops[neighbour] = *hops[node] + 1;
        next.push(neighbour);
      }
    }
  }
}

std::optional<std::size_t> SwitchRoutes::port(std::uint32_t node, std::uint32_t host) const {
  const auto& hops = hops_[host];
  if (!hops[node]) return std::nullopt;
  for (std::size_t port = 0; port < neighbours_[node].size(); ++port)
    if (hops[neighbours_[node][port]] == *hops[node] - 1) return port;
  return std::nullopt;
}

}  // namespace rnicsim::sim

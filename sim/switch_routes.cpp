#include "sim/switch_routes.h"

#include <queue>

namespace rnicsim::sim {

SwitchRoutes::SwitchRoutes(const Topology& topology)
    : neighbours_(topology.nodes()), cables_(topology.nodes()), tree_(topology.cables.size()) {
  for (std::size_t cable = 0; cable < topology.cables.size(); ++cable) {
    const auto [from, to] = topology.cables[cable];
    neighbours_[from].push_back(to);
    neighbours_[to].push_back(from);
    cables_[from].push_back(cable);
    cables_[to].push_back(cable);
  }
  grow_tree(topology);
  for (std::uint32_t host = 0; host < topology.interfaces.size() && !topology.switches.empty(); ++host) {
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

// From the first switch on; and from the next that it does not reach.
void SwitchRoutes::grow_tree(const Topology& topology) {
  std::vector<bool> reached(topology.nodes());
  for (std::size_t root = topology.interfaces.size(); root < topology.nodes(); ++root) {
    std::queue<std::uint32_t> next;
    if (!reached[root]) next.push(static_cast<std::uint32_t>(root));
    for (reached[root] = true; !next.empty(); next.pop()) {
      const auto node = next.front();
      if (!topology.is_switch(node)) continue;  // a host forwards nothing
      for (std::size_t port = 0; port < neighbours_[node].size(); ++port) {
        const auto neighbour = neighbours_[node][port];
        if (reached[neighbour]) continue;
        tree_[cables_[node][port]] = reached[neighbour] = true;
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

// SPDX-License-Identifier: Apache-2.0
#include "sim/switch_routes.h"

#include <limits>
#include <map>
#include <queue>

namespace rnicsim::sim {
namespace {

constexpr auto kUnreached = std::numeric_limits<std::uint32_t>::max();

}  // namespace

SwitchRoutes::SwitchRoutes(const Topology& topology)
    : cables_(topology.switches.size()),
      neighbours_(topology.switches.size()),
      tree_(topology.cables.size()),
      has_hosts_(topology.switches.size()) {
  const auto interfaces = static_cast<std::uint32_t>(topology.interfaces.size());
  for (std::size_t cable = 0; cable < topology.cables.size(); ++cable) {
    const auto [from, to] = topology.cables[cable];
    for (const auto& [node, other] : {std::pair(from, to), std::pair(to, from)}) {
      if (!topology.is_switch(node)) continue;
      auto& own = cables_[node - interfaces];
      if (topology.is_switch(other))
        neighbours_[node - interfaces].push_back({other - interfaces, static_cast<std::uint16_t>(own.size())});
      own.push_back(cable);
    }
  }
  find_stations(topology);
  find_ways(topology);
  grow_tree(topology);
}

void SwitchRoutes::find_stations(const Topology& topology) {
  const auto interfaces = topology.interfaces.size();
  for (std::uint32_t box = 0; box < cables_.size(); ++box)
    for (std::uint32_t port = 0; port < cables_[box].size(); ++port) {
      const auto [from, to] = topology.cables[cables_[box][port]];
      const auto node = from == box + interfaces ? to : from;
      if (topology.is_switch(node)) continue;
      stations_.add(topology.interfaces[node].mac, {box, port});
      has_hosts_[box] = true;
    }
}

// In a tree most switches have the same ports towards many others, so equal port lists are stored once.
void SwitchRoutes::find_ways(const Topology& topology) {
  const auto count = static_cast<std::uint32_t>(topology.switches.size());
  way_to_.assign(count, std::vector<std::uint16_t>(count));
  ways_.assign(count, {{}});
  std::vector<std::map<std::vector<std::uint16_t>, std::uint16_t>> known(count);
  std::vector<std::uint16_t> ports;
  for (std::uint32_t to = 0; to < count; ++to) {
    if (!has_hosts_[to]) continue;
    const auto hops = distances(to);
    for (std::uint32_t box = 0; box < count; ++box) {
      if (box == to || hops[box] == kUnreached) continue;
      ports.clear();
      for (const auto& [neighbour, port] : neighbours_[box])
        if (hops[neighbour] == hops[box] - 1) ports.push_back(port);
      const auto [found, is_new] = known[box].try_emplace(ports, static_cast<std::uint16_t>(ways_[box].size()));
      if (is_new) ways_[box].push_back(ports);
      way_to_[box][to] = found->second;
    }
  }
}

std::vector<std::uint32_t> SwitchRoutes::distances(std::uint32_t box) const {
  std::vector<std::uint32_t> hops(neighbours_.size(), kUnreached);
  std::queue<std::uint32_t> next;
  hops[box] = 0;
  for (next.push(box); !next.empty(); next.pop())
    for (const auto& [neighbour, port] : neighbours_[next.front()]) {
      if (hops[neighbour] != kUnreached) continue;
      hops[neighbour] = hops[next.front()] + 1;
      next.push(neighbour);
    }
  return hops;
}

// Breadth-first from the first switch, and again from the first switch that was not reached.
void SwitchRoutes::grow_tree(const Topology& topology) {
  const auto interfaces = topology.interfaces.size();
  std::vector<bool> reached(topology.nodes());
  for (std::size_t root = interfaces; root < topology.nodes(); ++root) {
    std::queue<std::size_t> next;
    if (!reached[root]) next.push(root);
    for (reached[root] = true; !next.empty(); next.pop()) {
      const auto node = next.front();
      if (!topology.is_switch(static_cast<std::uint32_t>(node))) continue;  // a host forwards nothing
      for (const auto cable : cables_[node - interfaces]) {
        const auto [from, to] = topology.cables[cable];
        const auto neighbour = from == node ? to : from;
        if (reached[neighbour]) continue;
        tree_[cable] = reached[neighbour] = true;
        next.push(neighbour);
      }
    }
  }
}

}  // namespace rnicsim::sim

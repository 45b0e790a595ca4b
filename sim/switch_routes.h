// Which port of a switch leads to which host: the shortest way, and of equal ones the one of the first cable. And which
// ports make a tree of all switches and hosts, by which a frame for a group comes to each host once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

// Nodes are numbered as in Topology. A switch's ports are numbered in the order of its cables.
class SwitchRoutes {
 public:
  explicit SwitchRoutes(const Topology& topology);

  std::size_t ports(std::uint32_t node) const { return neighbours_[node].size(); }
  // nullopt: no way.
  std::optional<std::size_t> port(std::uint32_t node, std::uint32_t host) const;
  bool in_tree(std::uint32_t node, std::size_t port) const { return tree_[cables_[node][port]]; }

 private:
  void grow_tree(const Topology& topology);

  std::vector<std::vector<std::uint32_t>> neighbours_;           // by node, in the order of its cables
  std::vector<std::vector<std::size_t>> cables_;                 // the same; their index in the topology
  std::vector<bool> tree_;                                       // by cable
  std::vector<std::vector<std::optional<std::uint32_t>>> hops_;  // by host, then by node
};

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Routes of each switch: the ports of all shortest paths to each other switch. Also a spanning tree of all switches and
// hosts, along which a multicast frame reaches each host once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/fabric/stations.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// Switches are numbered from 0 as in Topology::switches; a switch's ports are numbered in the order of its cables.
class SwitchRoutes {
 public:
  explicit SwitchRoutes(const Topology& topology);

  // Index in the topology of each port's cable.
  const std::vector<std::size_t>& cables(std::uint32_t box) const { return cables_[box]; }
  // The ports that lead from `box` to a switch with hosts are ways(box)[way_to(box)[that]]. A switch without hosts has
  // no entry.
  const std::vector<std::uint16_t>& way_to(std::uint32_t box) const { return way_to_[box]; }
  const std::vector<std::vector<std::uint16_t>>& ways(std::uint32_t box) const { return ways_[box]; }
  bool in_tree(std::uint32_t box, std::size_t port) const { return tree_[cables_[box][port]]; }
  const fabric::Stations& stations() const { return stations_; }

 private:
  struct Port {
    std::uint32_t box;
    std::uint16_t port;
  };

  void find_stations(const Topology& topology);
  void find_ways(const Topology& topology);
  // Distance of each switch to `box`, in cables.
  std::vector<std::uint32_t> distances(std::uint32_t box) const;
  void grow_tree(const Topology& topology);

  std::vector<std::vector<std::size_t>> cables_;  // by switch
  std::vector<std::vector<Port>> neighbours_;     // by switch: neighbour switches, each with the own port to it
  std::vector<bool> tree_;                        // by cable
  std::vector<bool> has_hosts_;                   // by switch
  std::vector<std::vector<std::uint16_t>> way_to_;
  std::vector<std::vector<std::vector<std::uint16_t>>> ways_;
  fabric::Stations stations_;
};

}  // namespace rnicsim::sim

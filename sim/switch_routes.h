// Which ports of a switch lead to which other switch: those of all shortest ways. And which ports make a tree of all
// switches and hosts, by which a frame for a group comes to each host once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/fabric/stations.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// Switches are numbered from 0 as in Topology::switches, a switch's ports in the order of its cables.
class SwitchRoutes {
 public:
  explicit SwitchRoutes(const Topology& topology);

  // The topology's index of each port's cable.
  const std::vector<std::size_t>& cables(std::uint32_t box) const { return cables_[box]; }
  // Of another switch with a host: ways(box)[way_to(box)[that]]. Of a switch without hosts there is none.
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
  // Of each switch, its distance to `box`, in cables.
  std::vector<std::uint32_t> distances(std::uint32_t box) const;
  void grow_tree(const Topology& topology);

  std::vector<std::vector<std::size_t>> cables_;  // by switch
  std::vector<std::vector<Port>> neighbours_;     // by switch: switches, and by which of its ports
  std::vector<bool> tree_;                        // by cable
  std::vector<bool> has_hosts_;                   // by switch
  std::vector<std::vector<std::uint16_t>> way_to_;
  std::vector<std::vector<std::vector<std::uint16_t>>> ways_;
  fabric::Stations stations_;
};

}  // namespace rnicsim::sim

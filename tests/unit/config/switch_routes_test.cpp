// SPDX-License-Identifier: Apache-2.0
// Routes through a topology: the shortest ways to each host, and one tree to all hosts.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sim/config/sized_topology.h"
#include "sim/switch_routes.h"

namespace rnicsim::sim {
namespace {

// Two hosts, and three switches in a ring; two of the switches have a second cable.
Topology ring() {
  Topology topology;
  topology.interfaces = {default_interface(0, "h0"), default_interface(1, "h1")};
  topology.switches = {"s0", "s1", "s2"};
  topology.cables = {{0, 2}, {1, 4}, {2, 3}, {3, 4}, {4, 2}, {2, 3}};
  return topology;
}

using Ports = std::vector<std::uint16_t>;

// Output ports from one switch to another.
Ports ways(const SwitchRoutes& routes, std::uint32_t from, std::uint32_t to) {
  return routes.ways(from)[routes.way_to(from)[to]];
}

const fabric::Stations::Place* place_of(const SwitchRoutes& routes, const abi::NetworkInterface& interface) {
  return routes.stations().find(fabric::mac_number(std::span<const std::uint8_t, 6>(interface.mac)));
}

TEST(SwitchRoutes, ShortestWays) {
  const auto topology = ring();
  const SwitchRoutes routes(topology);
  EXPECT_EQ(ways(routes, 0, 2), (Ports{2}));  // s0 to s2, without s1
  EXPECT_EQ(ways(routes, 2, 0), (Ports{2}));
  EXPECT_EQ(ways(routes, 1, 0), (Ports{0, 2}));  // by either cable
  const auto* place = place_of(routes, topology.interfaces[1]);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->box, 2u);
  EXPECT_EQ(place->port, 0u);
}

TEST(SwitchRoutes, EverySpineIsAWay) {
  const SwitchRoutes routes(*sized_topology("leaf-spine:3,2,4"));
  for (std::uint32_t from = 0; from < 3; ++from)
    for (std::uint32_t to = 0; to < 3; ++to) EXPECT_EQ(ways(routes, from, to), from == to ? Ports{} : (Ports{4, 5}));
  EXPECT_EQ(ways(routes, 3, 2), (Ports{2}));
}

TEST(SwitchRoutes, UpByEveryWayAndDownByOne) {
  const SwitchRoutes routes(*sized_topology("fat-tree:4"));
  EXPECT_EQ(ways(routes, 0, 1), (Ports{2, 3}));  // edge0 to edge1, in the same pod
  EXPECT_EQ(ways(routes, 0, 7), (Ports{2, 3}));  // edge0 to the last pod's last edge
  EXPECT_EQ(ways(routes, 8, 7), (Ports{2, 3}));  // agg0
  EXPECT_EQ(ways(routes, 8, 1), (Ports{1}));
  EXPECT_EQ(ways(routes, 16, 7), (Ports{3}));  // core0: one port for each pod
  EXPECT_EQ(routes.ways(0).size(), 2u) << "ways that are the same are kept once";
}

// A frame that every switch forwards along the tree: arrivals at each node, from host 0.
std::vector<int> seen_by_tree(const Topology& topology) {
  const SwitchRoutes routes(topology);
  const auto interfaces = static_cast<std::uint32_t>(topology.interfaces.size());
  std::vector<int> seen(topology.nodes());
  struct Hop {
    std::uint32_t node;
    std::size_t cable;
  };
  std::vector<Hop> way{{0, topology.cables.size()}};
  for (std::size_t next = 0; next < way.size(); ++next) {
    const auto [node, by] = way[next];
    if (++seen[node] > 1) return seen;
    const auto pass = [&](std::size_t cable) {
      const auto [from, to] = topology.cables[cable];
      if (cable != by) way.push_back({from == node ? to : from, cable});
    };
    if (!topology.is_switch(node)) {
      for (std::size_t cable = 0; cable < topology.cables.size() && node == 0; ++cable)
        if (topology.cables[cable].first == 0) pass(cable);
      continue;
    }
    const auto& cables = routes.cables(node - interfaces);
    for (std::size_t port = 0; port < cables.size(); ++port)
      if (routes.in_tree(node - interfaces, port)) pass(cables[port]);
  }
  return seen;
}

TEST(SwitchRoutes, TreeReachesAllOnce) {
  for (const auto& topology :
       {ring(), *sized_topology("star:5"), *sized_topology("leaf-spine:4,3,2"), *sized_topology("fat-tree:4")})
    EXPECT_EQ(seen_by_tree(topology), std::vector<int>(topology.nodes(), 1));
}

TEST(SwitchRoutes, EachIslandHasItsTree) {
  Topology topology;
  topology.interfaces = {default_interface(0, "h0"), default_interface(1, "h1")};
  topology.switches = {"s0", "s1"};
  topology.cables = {{0, 2}, {1, 3}};
  const SwitchRoutes routes(topology);
  EXPECT_TRUE(routes.in_tree(0, 0));
  EXPECT_TRUE(routes.in_tree(1, 0));
  EXPECT_EQ(ways(routes, 0, 1), Ports{});
}

// The largest topology needs little time and memory.
TEST(SwitchRoutes, OfThousands) {
  const auto topology = *sized_topology("fat-tree:24");
  const SwitchRoutes routes(topology);
  EXPECT_EQ(topology.interfaces.size(), 3456u);
  EXPECT_EQ(ways(routes, 0, 287).size(), 12u);
  EXPECT_EQ(place_of(routes, topology.interfaces.back())->box, 287u);
}

}  // namespace
}  // namespace rnicsim::sim

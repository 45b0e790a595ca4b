// Ways through a topology: to each host the shortest, to all of them one tree.
#include <gtest/gtest.h>

#include "sim/switch_routes.h"

namespace rnicsim::sim {
namespace {

// Two hosts, and three switches in a ring, two of them with a cable more between them.
Topology ring() {
  Topology topology;
  topology.interfaces = {default_interface(0, "h0"), default_interface(1, "h1")};
  topology.switches = {"s0", "s1", "s2"};
  topology.cables = {{0, 2}, {1, 4}, {2, 3}, {3, 4}, {4, 2}, {2, 3}};
  return topology;
}

TEST(SwitchRoutes, ShortestWay) {
  const SwitchRoutes routes(ring());
  EXPECT_EQ(routes.port(2, 1), 2u);  // s0 to h1 past s1
  EXPECT_EQ(routes.port(4, 0), 2u);
  EXPECT_EQ(routes.port(3, 0), 0u);
}

// A frame that every switch passes on by the tree comes to every node once, and ends.
TEST(SwitchRoutes, TreeReachesAllOnce) {
  const auto topology = ring();
  const SwitchRoutes routes(topology);
  std::vector<int> seen(topology.nodes());
  struct Hop {
    std::uint32_t node;
    std::size_t cable;
  };
  std::vector<Hop> way{{0, topology.cables.size()}};
  for (std::size_t next = 0; next < way.size(); ++next) {
    const auto [node, by] = way[next];
    ASSERT_LE(++seen[node], 1);
    if (node != 0 && !topology.is_switch(node)) continue;
    std::size_t port = 0;
    for (std::size_t cable = 0; cable < topology.cables.size(); ++cable) {
      const auto [from, to] = topology.cables[cable];
      if (from != node && to != node) continue;
      if (routes.in_tree(node, port++) && cable != by) way.push_back({from == node ? to : from, cable});
    }
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 1, 1, 1, 1}));
}

TEST(SwitchRoutes, EachIslandHasItsTree) {
  Topology topology;
  topology.interfaces = {default_interface(0, "h0"), default_interface(1, "h1")};
  topology.switches = {"s0", "s1"};
  topology.cables = {{0, 2}, {1, 3}};
  const SwitchRoutes routes(topology);
  EXPECT_TRUE(routes.in_tree(2, 0));
  EXPECT_TRUE(routes.in_tree(3, 0));
}

}  // namespace
}  // namespace rnicsim::sim

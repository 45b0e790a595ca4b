// SPDX-License-Identifier: Apache-2.0
// Members of multicast groups.
#include <gtest/gtest.h>

#include "model/base/group_mac.h"
#include "model/nic/packets/multicast_table.h"

namespace rnicsim::nic {
namespace {

using Members = std::vector<Qpn>;

roce::Gid group(std::uint8_t number) { return {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number}; }

TEST(MulticastTable, KeepsTheOrderOfAttachment) {
  MulticastTable table({.groups = 2, .of_a_group = 3, .attached = 4});
  EXPECT_EQ(table.members(group(1)), nullptr);
  for (const std::uint32_t qpn : {9, 3, 5}) EXPECT_TRUE(table.attach(group(1), {qpn}));
  ASSERT_NE(table.members(group(1)), nullptr);
  EXPECT_EQ(*table.members(group(1)), (Members{{9}, {3}, {5}}));
  EXPECT_TRUE(table.detach(group(1), {3}));
  EXPECT_TRUE(table.attach(group(1), {3}));
  EXPECT_EQ(*table.members(group(1)), (Members{{9}, {5}, {3}}));
}

TEST(MulticastTable, TwiceIsOnce) {
  MulticastTable table({.groups = 2, .of_a_group = 3, .attached = 4});
  EXPECT_TRUE(table.attach(group(1), {9}));
  EXPECT_TRUE(table.attach(group(1), {9}));
  EXPECT_EQ(table.members(group(1))->size(), 1u);
  EXPECT_TRUE(table.is_attached({9}));
  EXPECT_TRUE(table.detach(group(1), {9}));
  EXPECT_FALSE(table.detach(group(1), {9}));
  EXPECT_FALSE(table.is_attached({9}));
  EXPECT_EQ(table.members(group(1)), nullptr);
}

TEST(MulticastTable, HasRoomForSoMany) {
  MulticastTable table({.groups = 2, .of_a_group = 3, .attached = 4});
  for (const std::uint32_t qpn : {1, 2, 3}) EXPECT_TRUE(table.attach(group(1), {qpn}));
  EXPECT_FALSE(table.attach(group(1), {4}));  // limit per group
  EXPECT_TRUE(table.attach(group(1), {3}));   // no further member
  EXPECT_TRUE(table.attach(group(2), {1}));
  EXPECT_FALSE(table.attach(group(2), {2}));  // limit of all members
  EXPECT_TRUE(table.detach(group(1), {1}));
  EXPECT_FALSE(table.attach(group(3), {2}));  // limit of groups
  EXPECT_TRUE(table.attach(group(2), {2}));
  table.clear();
  EXPECT_TRUE(table.attach(group(3), {2}));
}

TEST(MulticastTable, RemembersWhoBlocksItsOwn) {
  MulticastTable table({});
  table.block_self({7});
  EXPECT_TRUE(table.blocks_self({7}));
  EXPECT_FALSE(table.blocks_self({8}));
  table.forget({7});
  EXPECT_FALSE(table.blocks_self({7}));
}

TEST(GroupMac, OfIpv4AndIpv6) {
  using Mac = std::array<std::uint8_t, 6>;
  const auto ipv4 = [](std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return roce::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
  };
  EXPECT_EQ(mac_of_group(ipv4(224, 0, 0, 1)), (Mac{1, 0, 0x5e, 0, 0, 1}));
  EXPECT_EQ(mac_of_group(ipv4(239, 255, 1, 2)), (Mac{1, 0, 0x5e, 0x7f, 1, 2}));  // the low 23 bits
  EXPECT_EQ(mac_of_group({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 1, 2, 3}), (Mac{0x33, 0x33, 0xff, 1, 2, 3}));
  EXPECT_FALSE(is_group(ipv4(223, 255, 255, 255)));
  EXPECT_FALSE(is_group(ipv4(240, 0, 0, 0)));
  EXPECT_FALSE(is_group({0xfe, 0x80}));
  EXPECT_FALSE(is_group({0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 224}));
}

}  // namespace
}  // namespace rnicsim::nic

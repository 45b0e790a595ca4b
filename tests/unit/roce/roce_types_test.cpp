// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/roce/types.h"

namespace rnicsim::roce {
namespace {

TEST(Psn, WrapsAt24Bits) {
  EXPECT_EQ((Psn(0xffffff) + 1).value(), 0u);
  EXPECT_EQ((Psn(0) - 1).value(), 0xffffffu);
  EXPECT_EQ(Psn(0x1000005), Psn(5));
}

TEST(Psn, DistanceIsSerial) {
  EXPECT_EQ(distance(Psn(10), Psn(15)), 5);
  EXPECT_EQ(distance(Psn(15), Psn(10)), -5);
  EXPECT_EQ(distance(Psn(0xfffffe), Psn(2)), 4);
  EXPECT_EQ(distance(Psn(2), Psn(0xfffffe)), -4);
  EXPECT_EQ(distance(Psn(0), Psn(0x7fffff)), 0x7fffff);
  EXPECT_EQ(distance(Psn(0), Psn(0x800000)), -0x800000);
}

TEST(Psn, BeforeFollowsTheWindow) {
  EXPECT_TRUE(before(Psn(0xffffff), Psn(0)));
  EXPECT_FALSE(before(Psn(0), Psn(0xffffff)));
  EXPECT_FALSE(before(Psn(7), Psn(7)));
}

TEST(Packets, ForLengths) {
  EXPECT_EQ(packets_for(0, 1024), 1u);
  EXPECT_EQ(packets_for(1, 1024), 1u);
  EXPECT_EQ(packets_for(1024, 1024), 1u);
  EXPECT_EQ(packets_for(1025, 1024), 2u);
  EXPECT_EQ(packets_for(0xffffffff, 256), 0x1000000u);
}

TEST(Mtu, FromItsCode) {
  EXPECT_EQ(mtu_bytes(1), 256u);
  EXPECT_EQ(mtu_bytes(5), 4096u);
}

}  // namespace
}  // namespace rnicsim::roce

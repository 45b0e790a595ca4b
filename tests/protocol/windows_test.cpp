// SPDX-License-Identifier: Apache-2.0
// A type 2 window that its peer invalidates, seen on the wire.
#include <gmock/gmock.h>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing {
namespace {

using roce::Opcode;

class WindowWire : public RcWire {};

TEST_F(WindowWire, SendWithInvalidateBringsTheKey) {
  Exchange<EndpointAddress> keys;
  std::uint32_t key = 0;
  EndpointOptions binds;
  binds.mr_access |= IBV_ACCESS_MW_BIND;
  run_connected(
      [&](Endpoint& end) {
        key = keys.swap(0, {}).rkey;
        for (const std::uint32_t bytes : {16u, 1500u}) {
          meet(0);
          auto wr = end.request(IBV_WR_SEND_WITH_INV, 0, bytes);
          wr.invalidate_rkey = key;
          ASSERT_EQ(end.post(wr), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);
        }
      },
      [&](Endpoint& end) {
        ibv_mw* mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_2);
        ASSERT_NE(mw, nullptr);
        const auto rkey = (mw->rkey & ~0xffu) | 0x5a;
        keys.swap(1, {.rkey = rkey});
        for (int round = 0; round < 2; ++round) {
          ibv_send_wr bind{};
          bind.opcode = IBV_WR_BIND_MW;
          bind.bind_mw.mw = mw;
          bind.bind_mw.rkey = rkey;
          bind.bind_mw.bind_info = {end.mr, end.address().buffer, 64, IBV_ACCESS_REMOTE_WRITE};
          ASSERT_EQ(end.post(bind), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          ASSERT_EQ(end.receive(1024, 2000), 0);
          meet(1);
          EXPECT_EQ(end.completion().invalidated_rkey, rkey);
          meet(1);
        }
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
      },
      {}, binds);
  // A bind sends no packet.
  const auto packets = requests();
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_TRUE(requests(1).empty());
  EXPECT_EQ(packets[0].opcode(), Opcode::send_only_inv);
  EXPECT_EQ(packets[1].opcode(), Opcode::send_first);
  EXPECT_EQ(packets[2].opcode(), Opcode::send_last_inv);
  EXPECT_FALSE(packets[1].headers.invalidate);
  for (const auto i : {0u, 2u}) EXPECT_EQ(packets[i].headers.invalidate->value, key);
}

}  // namespace
}  // namespace rnicsim::testing

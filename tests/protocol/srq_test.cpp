// SPDX-License-Identifier: Apache-2.0
// An empty shared receive queue, seen on the wire.
#include <gmock/gmock.h>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;

class SrqWire : public RcWire {};

// The RNR NAK's timer comes from the QP; an SRQ has none.
TEST_F(SrqWire, AnEmptyQueueAsksToWait) {
  constexpr std::uint8_t kTimer = 12;  // 640 us
  constexpr Duration kWait{640'000'000};
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 2000)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        pass(1, Duration{50'000'000});
        ASSERT_EQ(end.receive(0, 4000, 7), 0);
        EXPECT_EQ(end.completion().wr_id, 7u);
      },
      {.psn = 100}, {.shared_wr = 15, .min_rnr_timer = kTimer});
  const auto asked = requests();
  EXPECT_THAT(psns(asked), ElementsAre(100, 101, 100, 101));
  const auto said = answers();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].headers.aeth->syndrome, roce::Aeth::kRnrNak | kTimer);
  EXPECT_EQ(said[0].psn(), 100u);
  EXPECT_EQ(said[0].headers.aeth->msn, 0u);
  EXPECT_TRUE(said[1].is_nak(roce::Aeth::kAck));
  EXPECT_EQ(said[1].psn(), 101u);
  EXPECT_EQ(said[1].headers.aeth->msn, 1u);
  EXPECT_GE(asked[2].at - said[0].at, kWait);
  EXPECT_LT(asked[2].at - said[0].at, kWait + Duration{4'000'000});
}

// Requests behind a waiting SEND are not sent.
TEST_F(SrqWire, ASendThatWaitsHoldsUpItsQueuePair) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        while (answers().empty()) pass(0, Duration{1'000'000});
        meet(0);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.receive(0, 64), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, 8u);
      },
      {.psn = 7}, {.shared_wr = 3, .min_rnr_timer = 2});
  EXPECT_THAT(psns(requests()), ElementsAre(7, 7, 8));
}

}  // namespace
}  // namespace rnicsim::testing

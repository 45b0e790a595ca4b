// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/roce/qp_state.h"

namespace rnicsim::roce {
namespace {

using namespace attr;
using enum QpState;

Transition rc(QpState from, QpState to, std::uint32_t mask) {
  return check_transition(Transport::rc, from, to, mask | kState);
}

constexpr std::uint32_t kInit = kPkeyIndex | kPort | kAccess;
constexpr std::uint32_t kRtr = kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer;
constexpr std::uint32_t kRts = kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic;

TEST(StateTable, TheUsualWayUp) {
  EXPECT_EQ(rc(reset, init, kInit), Transition::ok);
  EXPECT_EQ(rc(init, rtr, kRtr), Transition::ok);
  EXPECT_EQ(rc(rtr, rts, kRts), Transition::ok);
}

TEST(StateTable, EachRequiredAttributeIsMissed) {
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if (kInit & bit) {
      EXPECT_EQ(rc(reset, init, kInit & ~bit), Transition::missing_attribute);
    }
    if (kRtr & bit) {
      EXPECT_EQ(rc(init, rtr, kRtr & ~bit), Transition::missing_attribute);
    }
    if (kRts & bit) {
      EXPECT_EQ(rc(rtr, rts, kRts & ~bit), Transition::missing_attribute);
    }
  }
}

TEST(StateTable, ExtraAttributesAreRefused) {
  EXPECT_EQ(rc(reset, init, kInit | kPath), Transition::extra_attribute);
  EXPECT_EQ(rc(init, rtr, kRtr | kTimeout), Transition::extra_attribute);
  EXPECT_EQ(rc(rts, rts, kTimeout), Transition::extra_attribute);
  EXPECT_EQ(rc(rts, error, kTimeout), Transition::extra_attribute);
}

TEST(StateTable, ResetAndErrorFromAnywhere) {
  for (const auto from : {reset, init, rtr, rts, sqd, sqe, error}) {
    EXPECT_EQ(rc(from, reset, 0), Transition::ok);
    EXPECT_EQ(rc(from, error, 0), Transition::ok);
  }
}

TEST(StateTable, NoShortCuts) {
  EXPECT_EQ(rc(reset, rtr, kRtr), Transition::not_allowed);
  EXPECT_EQ(rc(init, rts, kRts), Transition::not_allowed);
  EXPECT_EQ(rc(error, init, kInit), Transition::not_allowed);
  EXPECT_EQ(rc(sqe, rts, 0), Transition::not_allowed);
  EXPECT_EQ(rc(rts, static_cast<QpState>(7), 0), Transition::not_allowed);
}

TEST(StateTable, OtherTransports) {
  EXPECT_EQ(check_transition(Transport::ud, reset, init, kState | kPkeyIndex | kPort | kQkey), Transition::ok);
  EXPECT_EQ(check_transition(Transport::ud, init, rtr, kState), Transition::ok);
  EXPECT_EQ(check_transition(Transport::uc, init, rtr, kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn),
            Transition::ok);
  EXPECT_EQ(check_transition(Transport::uc, rtr, rts, kState | kSendPsn | kTimeout), Transition::extra_attribute);
  EXPECT_EQ(check_transition(Transport::ud, sqe, rts, kState), Transition::ok);
}

// Each XRC end has RC's attributes, except those of the other end.
TEST(StateTable, Xrc) {
  constexpr std::uint32_t kAnswers = kMaxDestRdAtomic | kMinRnrTimer;
  constexpr std::uint32_t kAsks = kRetryCount | kRnrRetry | kMaxRdAtomic;
  const auto sends = [](QpState from, QpState to, std::uint32_t mask) {
    return check_transition(Transport::xrc_send, from, to, mask | kState);
  };
  const auto receives = [](QpState from, QpState to, std::uint32_t mask) {
    return check_transition(Transport::xrc_recv, from, to, mask | kState);
  };
  EXPECT_EQ(sends(reset, init, kInit), Transition::ok);
  EXPECT_EQ(receives(reset, init, kInit), Transition::ok);
  EXPECT_EQ(sends(init, rtr, kRtr & ~kAnswers), Transition::ok);
  EXPECT_EQ(sends(init, rtr, kRtr), Transition::extra_attribute);
  EXPECT_EQ(receives(init, rtr, kRtr), Transition::ok);
  EXPECT_EQ(receives(init, rtr, kRtr & ~kMinRnrTimer), Transition::missing_attribute);
  EXPECT_EQ(sends(rtr, rts, kRts), Transition::ok);
  EXPECT_EQ(sends(rtr, rts, kRts & ~kRetryCount), Transition::missing_attribute);
  EXPECT_EQ(sends(rtr, rts, kRts | kMinRnrTimer), Transition::extra_attribute);
  EXPECT_EQ(receives(rtr, rts, kSendPsn | kTimeout), Transition::ok);
  EXPECT_EQ(receives(rtr, rts, kSendPsn), Transition::missing_attribute);
  EXPECT_EQ(receives(rtr, rts, kRts), Transition::extra_attribute);
  EXPECT_EQ(receives(rts, rts, kMinRnrTimer), Transition::ok);
  EXPECT_EQ(sends(rts, rts, kMinRnrTimer), Transition::extra_attribute);
  EXPECT_EQ(sends(rts, sqd, kSqdNotify), Transition::ok);
  EXPECT_EQ(sends(sqd, sqd, kPath | kAsks | kTimeout), Transition::ok);
  EXPECT_EQ(sends(sqd, sqd, kMinRnrTimer), Transition::extra_attribute);
  EXPECT_EQ(receives(sqd, sqd, kPath | kAnswers | kTimeout), Transition::ok);
  EXPECT_EQ(receives(sqd, sqd, kRetryCount), Transition::extra_attribute);
  EXPECT_EQ(sends(sqe, rts, 0), Transition::not_allowed);
}

}  // namespace
}  // namespace rnicsim::roce

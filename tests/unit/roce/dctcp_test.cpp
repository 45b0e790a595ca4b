// SPDX-License-Identifier: Apache-2.0
// DCTCP: alpha and the window at computed points, windows counted in bytes, losses, and the closed loop.
#include "tests/unit/roce/congestion_loop.h"

namespace rnicsim::roce::dctcp_test {
namespace {

using namespace congestion_loop;

class Dctcp : public ControlTest {
 protected:
  Dctcp() : ControlTest("dctcp") {}

  void answer(bool marked, std::uint64_t bytes = kPacket, std::uint64_t in_flight = 0) {
    acknowledge({.rtt = 13_us, .bytes = bytes, .in_flight = in_flight, .marked = marked});
  }
};

constexpr double kBegins = 162'500;  // bytes: 13 us at 100 Gb/s

TEST_F(Dctcp, BeginsWithTheWindowOfTheLine) {
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_DOUBLE_EQ(window(), kBegins);
  EXPECT_DOUBLE_EQ(alpha(), 1);
  EXPECT_TRUE(control().wants_acknowledgements() && control().wants_marks());
}

TEST_F(Dctcp, AWindowWithoutMarksAddsAPacket) {
  send();
  answer(true);  // alpha 1: half of the window remains
  EXPECT_DOUBLE_EQ(window(), kBegins / 2);
  EXPECT_DOUBLE_EQ(rate(), 50);
  answer(false);
  EXPECT_NEAR(window(), kBegins / 2 + 4178 * 4178 / (kBegins / 2), 1);
  const auto before = window();
  answer(false, static_cast<std::uint64_t>(before));
  EXPECT_NEAR(window(), before + kPacket, 1);
}

// Alpha from the marked share F of each window, g = 1/16.
TEST_F(Dctcp, AlphaIsTheAverageShareOfMarkedBytes) {
  send();
  answer(false, 1000, 4000);  // the first acknowledgement is a window by itself
  EXPECT_DOUBLE_EQ(alpha(), 15.0 / 16);
  answer(true, 1000, 4000);  // 4000 bytes that left before, and one byte after
  answer(false, 3000, 4000);
  EXPECT_DOUBLE_EQ(alpha(), 15.0 / 16);
  answer(false, 1000, 0);
  EXPECT_NEAR(alpha(), 15.0 / 16 * 15 / 16 + 1.0 / 16 * 1000 / 5000, 1e-12);
}

TEST_F(Dctcp, MarksTakeTheirShareOnceAWindow) {
  set("initial_alpha", 0.5);
  set("g", 0);
  send();
  answer(true, 1000, 5000);
  EXPECT_NEAR(window(), kBegins * 0.75, 1);
  answer(true, 5000, 5000);  // left before the cut
  EXPECT_NEAR(window(), kBegins * 0.75, 1);
  answer(false, 0);  // no byte: no time has passed
  EXPECT_NEAR(window(), kBegins * 0.75, 1);
  answer(true, 1, 5000);
  EXPECT_NEAR(window(), kBegins * 0.75 * 0.75, 1);
}

TEST_F(Dctcp, NoMarksNoCutWhateverAlpha) {
  send();
  for (int i = 0; i < 100; ++i) answer(false);
  EXPECT_GE(window(), kBegins);
  EXPECT_LT(alpha(), 0.01);
}

// The limit is the line's bytes in a round trip, plus one acknowledgement.
TEST_F(Dctcp, TheWindowStopsAtWhatTheLineSends) {
  send();
  for (int i = 0; i < 1000; ++i) answer(false, 10'000);
  EXPECT_DOUBLE_EQ(window(), kBegins + 10'000);
  EXPECT_DOUBLE_EQ(rate(), 100);
}

TEST_F(Dctcp, ALossHalvesOnceInARoundTrip) {
  send();
  lose(1_us);
  EXPECT_DOUBLE_EQ(window(), kBegins / 2);
  lose(13_us - 1_ps);
  EXPECT_DOUBLE_EQ(window(), kBegins / 2);
  lose(1_ps);
  EXPECT_DOUBLE_EQ(window(), kBegins / 4);
  for (int i = 0; i < 30; ++i) lose(1_ms);
  EXPECT_DOUBLE_EQ(window(), kPacket);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
}

TEST_F(Dctcp, ATimeoutLeavesAPacketAndSlowStart) {
  send();
  time_out(1_us);
  EXPECT_DOUBLE_EQ(window(), kPacket);
  EXPECT_NEAR(rate(), kPacket * 8 / 13e-6 / 1e9, 1e-9);
  double wanted = kPacket;
  while (wanted < kBegins / 2) {  // doubles each window
    answer(false, static_cast<std::uint64_t>(wanted));
    wanted *= 2;
    ASSERT_NEAR(window(), wanted, 1);
  }
  answer(false, static_cast<std::uint64_t>(wanted));
  EXPECT_NEAR(window(), wanted + kPacket, 1);
}

TEST_F(Dctcp, ASecondTimeoutKeepsTheEndOfSlowStart) {
  send();
  time_out(1_us);
  time_out(1_us);
  answer(false);
  EXPECT_DOUBLE_EQ(window(), 2 * kPacket);
  answer(false, 2 * kPacket);
  EXPECT_DOUBLE_EQ(window(), 4 * kPacket);
}

TEST_F(Dctcp, AMarkEndsSlowStart) {
  set("initial_alpha", 0);
  set("g", 0);
  send();
  time_out(1_us);
  answer(false);
  answer(true);  // alpha 0: no cut
  EXPECT_DOUBLE_EQ(window(), 2 * kPacket);
  answer(false, 2 * kPacket);
  EXPECT_DOUBLE_EQ(window(), 3 * kPacket);
}

// An acknowledgement of more bytes than the reduced window counts as one window.
TEST_F(Dctcp, OneAcknowledgementIsARoundTripAtMost) {
  send();
  for (int i = 0; i < 4; ++i) lose(1_ms);
  answer(false, 100'000);
  EXPECT_NEAR(window(), kBegins / 16 + kPacket, 1);
}

TEST_F(Dctcp, WhateverComesTheBoundsHold) {
  for (std::uint64_t seed = 1; seed <= kWalks; ++seed) walk(*make(), seed, 1e8);
}

constexpr double kMarks = 300'000;  // 30 KB for each 10 Gb/s

TEST_F(Dctcp, FlowsAreEqualAndTheQueueIsNearTheMark) {
  for (const std::size_t flows : {2, 4, 8}) {
    Loop loop({.mark_above = static_cast<std::uint64_t>(kMarks)}, flows, [&] { return make(); });
    loop.run_until(20_ms);
    loop.measure();
    loop.run_until(170_ms);  // windows have seen about the fair share: a mean of many
    EXPECT_GT(loop.total_rate(), 99) << flows;
    EXPECT_LT(loop.unfairness(), 0.1) << flows;
    EXPECT_NEAR(loop.mean_queue(), kMarks, kMarks * 0.1) << flows;
    EXPECT_LT(loop.most_queue(), kMarks * 1.2) << flows;
    for (std::size_t i = 1; i < flows; ++i) loop.stop(i);
    loop.run_until(180_ms);
    loop.measure();
    loop.run_until(190_ms);
    EXPECT_GT(loop.rate(0), 99) << flows;
  }
}

// An acknowledgement of 16 packets is marked when one of them was: the queue is shorter; shares differ by a third, and
// are not checked.
TEST_F(Dctcp, CoalescedAcknowledgementsKeepTheLoopStable) {
  for (const std::size_t flows : {1, 2, 4, 8}) {
    Loop loop({.acknowledge_every = 16, .mark_above = static_cast<std::uint64_t>(kMarks)}, flows,
              [&] { return make(); });
    loop.run_until(20_ms);
    loop.measure();
    loop.run_until(60_ms);
    EXPECT_GT(loop.total_rate(), 99) << flows;
    EXPECT_GT(loop.mean_queue(), flows == 1 ? 0 : kMarks * 0.7) << flows;
    EXPECT_LT(loop.most_queue(), kMarks * 1.4) << flows;
  }
}

}  // namespace
}  // namespace rnicsim::roce::dctcp_test

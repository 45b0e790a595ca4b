// SPDX-License-Identifier: Apache-2.0
// TIMELY: updates at computed points on both sides of each threshold, losses, and the closed loop. The paper does not
// promise equal shares, and a later paper (CoNEXT 2016) shows that there is no unique fixed point: the loop is checked
// only for utilisation and for a bounded queue.
#include "tests/unit/roce/congestion_loop.h"

namespace rnicsim::roce::timely_test {
namespace {

using namespace congestion_loop;

class Timely : public ControlTest {
 protected:
  Timely() : ControlTest("timely") {}

  // A segment is acknowledged, one min_rtt after the previous segment.
  void segment(Duration rtt, Duration after = 20_us) { acknowledge({.rtt = rtt, .bytes = 16'000}, after); }
};

TEST_F(Timely, BeginsAtTheLinesRateWithoutAWindow) {
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_EQ(control().allowance({}).window, Allowance::kNoWindow);
  EXPECT_EQ(control().next_change(), CongestionControl::kNever);
  EXPECT_TRUE(control().wants_acknowledgements());
  EXPECT_FALSE(control().wants_marks());
}

// Delta is 10 Mb/s for each 10 Gb/s of the line: 0.1 Gb/s here.
TEST_F(Timely, TheGradientDecidesBetweenTheThresholds) {
  segment(60_us);  // the first round trip has no predecessor
  EXPECT_DOUBLE_EQ(rate(), 100);
  segment(62_us);  // 0.875 x 2 us / 20 us = 0.0875
  EXPECT_NEAR(rate(), 100 * (1 - 0.8 * 0.0875), 1e-9);
  segment(62_us);  // the average is 0.125 x 1.75 us now
  EXPECT_NEAR(rate(), 93 * (1 - 0.8 * 0.125 * 0.0875), 1e-9);
  const auto before = rate();
  segment(50_us);  // t_low itself is between the thresholds
  EXPECT_NEAR(rate(), before + 0.1, 1e-9);
}

// The gradient is positive in both; just below t_low it does not count.
TEST_F(Timely, BelowTLowTheRateRises) {
  segment(60_us);
  segment(80_us);
  const auto low = rate();
  EXPECT_NEAR(low, 100 * (1 - 0.8 * 0.875), 1e-9);
  segment(40_us);
  segment(50_us - 1_ps);
  EXPECT_NEAR(rate(), low + 0.2, 1e-9);
  segment(70_us);
  EXPECT_LT(rate(), low + 0.2);
}

TEST_F(Timely, AboveTHighTheRateFallsWhateverTheGradient) {
  segment(2000_us);
  segment(1000_us);  // much shorter, but the factor is 1 - 0.8 x (1 - 500 / 1000)
  EXPECT_NEAR(rate(), 60, 1e-9);
  segment(500_us);  // t_high itself is between the thresholds
  EXPECT_NEAR(rate(), 60.1, 1e-9);
  segment(500_us + 1_us);
  EXPECT_NEAR(rate(), 60.1 * (1 - 0.8 * (1 - 500.0 / 501)), 1e-9);
}

TEST_F(Timely, TheSixthUpdateInARowRisesFiveTimesAsMuch) {
  segment(60_us);
  segment(80_us);
  segment(50_us);
  auto before = rate();
  for (int i = 2; i <= 7; ++i) {
    segment(50_us);
    EXPECT_NEAR(rate() - before, i <= 5 ? 0.1 : 0.5, 1e-9) << i;
    before = rate();
  }
  segment(50_us - 1_ps);  // below t_low the row ends
  EXPECT_NEAR(rate() - before, 0.1, 1e-9);
  segment(50_us);
  EXPECT_NEAR(rate() - before, 0.2, 1e-9);
}

TEST_F(Timely, AnUpdateWaitsForASegmentAndForTime) {
  segment(60_us);
  acknowledge({.rtt = 80_us, .bytes = 15'999}, 40_us);
  EXPECT_DOUBLE_EQ(rate(), 100);
  acknowledge({.rtt = 80_us, .bytes = 1}, 0_us);
  const auto after = rate();
  EXPECT_NEAR(after, 30, 1e-9);
  segment(100_us, 20_us - 1_ps);
  EXPECT_DOUBLE_EQ(rate(), after);
  segment(100_us, 1_ps);
  EXPECT_LT(rate(), after);
}

TEST_F(Timely, AnUnknownRoundTripIsNoUpdate) {
  segment(60_us);
  segment(0_us);
  EXPECT_DOUBLE_EQ(rate(), 100);
  segment(80_us, 0_us);  // compared with 60 us
  EXPECT_NEAR(rate(), 30, 1e-9);
}

TEST_F(Timely, TheGradientIsNoMoreThanAllAndTheLeastRateHolds) {
  segment(60_us);
  segment(160_us);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
  for (int i = 0; i < 9; ++i) segment(3_ms);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
}

TEST_F(Timely, ALossHalvesOnceInARoundTrip) {
  segment(60_us);
  lose(100_us);
  EXPECT_DOUBLE_EQ(rate(), 50);
  lose(60_us - 1_ps);
  EXPECT_DOUBLE_EQ(rate(), 50);
  time_out(1_ps);
  EXPECT_DOUBLE_EQ(rate(), 25);
  for (int i = 0; i < 20; ++i) time_out(1_ms);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
}

TEST_F(Timely, DeltaGrowsWithTheLine) {
  const auto slow = make(25_Gbps);
  slow->lost(1_us);
  slow->acknowledged({.rtt = 10_us, .bytes = 16'000}, 2_us);
  slow->acknowledged({.rtt = 10_us, .bytes = 16'000}, 30_us);
  EXPECT_NEAR(slow->allowance(30_us).rate, 12.5e9 + 25e6, 1);
}

TEST_F(Timely, WhateverComesTheBoundsHold) {
  for (std::uint64_t seed = 1; seed <= kWalks; ++seed) walk(*make(), seed, 1e8);
}

// --- Patched (CoNEXT 2016): the distance from t_low of 50 us counts, weighted by the gradient.
class PatchedTimely : public Timely {
 protected:
  PatchedTimely() {
    set("patched", 1);
    set("alpha", 1);
    set("beta", 0.008);
  }
};

TEST_F(PatchedTimely, TheGradientWeighsTheDistanceFromTLow) {
  segment(100_us);
  segment(100_us);  // gradient 0: half of delta up, half of 0.008 x 100 % down
  EXPECT_NEAR(rate(), 100 * (1 - 0.008 * 0.5) + 0.05, 1e-9);
  auto before = rate();
  segment(105_us);  // gradient 1/4: all of 0.008 x 110 %
  EXPECT_NEAR(rate(), before * (1 - 0.008 * 1.1), 1e-9);
  before = rate();
  segment(100_us);  // gradient -1/4: delta
  EXPECT_NEAR(rate(), before + 0.1, 1e-9);
  before = rate();
  segment(102_us);  // gradient 0.1: weight 0.7
  EXPECT_NEAR(rate(), before * (1 - 0.008 * 0.7 * 1.04) + 0.03, 1e-9);
}

// TIMELY keeps unequal rates; with the patch the flows reach equal rates.
TEST_F(PatchedTimely, FlowsBecomeEqual) {
  const auto unfairness = [this] {
    int made = 0;
    Loop loop({}, 2, [&] {
      auto control = make();
      if (made++ == 1)  // begins with a fourth of the rate
        for (int i = 0; i < 2; ++i) control->lost(Duration{});
      return control;
    });
    loop.run_until(150_ms);
    loop.measure();
    loop.run_until(200_ms);
    EXPECT_GT(loop.total_rate(), 85);
    return loop.unfairness();
  };
  EXPECT_LT(unfairness(), 0.05);
}

// 500 us at the line's rate are 6.25 MB. The queue stays near t_low's: 38 us, or 475 KB.
TEST_F(Timely, FlowsUseThePortAndTheQueueIsBounded) {
  for (const std::size_t flows : {2, 4, 8})
    for (const std::uint32_t every : {1u, 16u}) {
      Loop loop({.acknowledge_every = every}, flows, [&] { return make(); });
      loop.run_until(40_ms);
      loop.measure();
      loop.run_until(80_ms);
      EXPECT_GT(loop.total_rate(), 90) << flows;
      EXPECT_LT(loop.most_queue(), 800'000) << flows;
      EXPECT_LT(loop.mean_queue(), 475'000) << flows;
      for (std::size_t i = 1; i < flows; ++i) loop.stop(i);
      loop.run_until(105_ms);
      loop.measure();
      loop.run_until(110_ms);
      EXPECT_GT(loop.rate(0), 98) << flows;
    }
}

}  // namespace
}  // namespace rnicsim::roce::timely_test

// SPDX-License-Identifier: Apache-2.0
// HPCC: the window at computed points of telemetry, the reference that moves once per round trip, incomplete telemetry,
// losses, and the closed loop.
#include "tests/unit/roce/congestion_loop.h"

namespace rnicsim::roce::hpcc_test {
namespace {

using namespace congestion_loop;

constexpr double kBegins = 162'500;  // bytes: 13 us at 100 Gb/s

class Hpcc : public ControlTest {
 protected:
  Hpcc() : ControlTest("hpcc") { set("w_ai", 80); }  // w_ai: a step that is small beside the others

  // Telemetry of one port, `after` the previous one: utilisation `used`, and `queue` bytes waiting. The first has no
  // predecessor to compare with.
  void answer(double used, std::uint64_t queue = 0, std::uint64_t in_flight = 0, Duration after = 13_us) {
    const HopChange hop{.rate = kLine,
                        .over = after,
                        .sent = bytes(used, after),
                        .queue = queue,
                        .queue_before = std::exchange(queue_, queue)};
    tell({&hop, std::exchange(began_, true) ? 1u : 0u}, in_flight);
  }
  void tell(std::span<const HopChange> hops, std::uint64_t in_flight = 0) {
    acknowledge({.rtt = 13_us, .bytes = kPacket, .in_flight = in_flight, .hops = hops});
  }
  // Bytes of a port of 100 Gb/s with utilisation `used`.
  static std::uint64_t bytes(double used, Duration over) {
    return static_cast<std::uint64_t>(std::llround(used * static_cast<double>(over.ps) * 0.0125));
  }

 private:
  bool began_ = false;
  std::uint64_t queue_ = 0;
};

TEST_F(Hpcc, BeginsWithTheWindowOfTheLine) {
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_DOUBLE_EQ(window(), kBegins);
  EXPECT_TRUE(control().wants_acknowledgements() && control().wants_telemetry());
  EXPECT_FALSE(control().wants_marks());
}

TEST_F(Hpcc, ABusyPortBringsTheWindowToEta) {
  send();
  answer(1);  // the first has no predecessor
  EXPECT_DOUBLE_EQ(window(), kBegins);
  answer(1);
  EXPECT_NEAR(window(), kBegins * 0.95 + 80, 1);
  EXPECT_NEAR(rate(), 95 + 80 * 8 / 13e3, 1e-3);
  const auto before = window();
  answer(0.96);  // just above eta
  EXPECT_NEAR(window(), before * 0.95 / 0.96 + 80, 2);
}

// The smaller of two queues counts: 81,250 bytes are half of the port's bytes in 13 us.
TEST_F(Hpcc, AQueueCountsWhenItStays) {
  send();
  answer(1);
  answer(1, 81'250);
  const auto before = window();
  EXPECT_NEAR(before, kBegins * 0.95 + 80, 1);
  answer(1, 162'500);
  EXPECT_NEAR(window(), before * 0.95 / 1.5 + 80, 1);
  const auto once = window();
  answer(1, 0);
  EXPECT_NEAR(window(), once * 0.95 + 80, 1);
}

// Five round trips of w_ai, then a jump.
TEST_F(Hpcc, AFreePortRaisesTheWindowStepByStepAndThenAtOnce) {
  send();
  answer(1);
  answer(1, 162'500);
  answer(1, 162'500);
  auto wanted = (kBegins * 0.95 + 80) * 0.95 / 2 + 80;
  EXPECT_NEAR(window(), wanted, 1);
  for (int i = 1; i <= 5; ++i) {
    answer(0.94);
    wanted += 80;
    EXPECT_NEAR(window(), wanted, 1) << i;
  }
  answer(0.5);
  wanted = wanted * 0.95 / 0.5 + 80;
  EXPECT_NEAR(window(), wanted, 2);
  answer(0.5);
  EXPECT_NEAR(window(), wanted + 80, 2);
}

TEST_F(Hpcc, WithoutStagesEachRoundTripJumps) {
  set("max_stage", 0);
  set("w_ai", 0);
  send();
  answer(1);
  answer(1, 162'500);
  answer(1, 162'500);
  const auto before = kBegins * 0.95 * 0.95 / 2;
  EXPECT_NEAR(window(), before, 1);
  answer(0.94);
  EXPECT_NEAR(window(), before * 0.95 / 0.94, 2);
  answer(0);  // no flow sends: the port is free
  EXPECT_DOUBLE_EQ(window(), kBegins);
}

// A receiver sends an acknowledgement with telemetry, and then another one without. If each round trip ends at the
// latter, the reference moves at the next acknowledgement with telemetry.
TEST_F(Hpcc, TheReferenceMovesIfRoundTripsEndWithoutTelemetry) {
  send();
  answer(1, 0, kPacket);
  for (int i = 0; i < 10; ++i) {
    answer(1, 0, kPacket);
    tell({}, kPacket);
  }
  EXPECT_LT(window(), 0.8 * kBegins);
}

// Acknowledgements of packets that left before the reference moved compute from the same reference.
TEST_F(Hpcc, TheReferenceMovesOnceARoundTrip) {
  send();
  answer(1, 0, 3 * kPacket);
  for (int i = 0; i < 3; ++i) {
    answer(1, 0, 3 * kPacket);
    EXPECT_NEAR(window(), kBegins * 0.95 + 80, 1) << i;
  }
  answer(1, 0, 3 * kPacket);  // the fourth packet: now the reference moves, by the same step
  EXPECT_NEAR(window(), kBegins * 0.95 + 80, 1);
  answer(1, 0, 3 * kPacket);
  EXPECT_NEAR(window(), (kBegins * 0.95 + 80) * 0.95 + 80, 1);
}

// Half of base_rtt has passed: half of the estimate is new.
TEST_F(Hpcc, TheEstimateIsAnAverageOverBaseRtt) {
  send();
  answer(1);
  answer(0.6, 0, 0, 6'500_ns);  // 0.5 x 1 + 0.5 x 0.6
  const auto before = window();
  EXPECT_NEAR(before, kBegins, 1);
  answer(1.2, 0, 0, 130_us);  // ten times base_rtt: the whole estimate is new
  EXPECT_NEAR(window(), kBegins * 0.95 / 1.2 + 80, 1);
}

TEST_F(Hpcc, TheBusiestPortCounts) {
  send();
  tell({});
  HopChange hops[] = {{.rate = 400_Gbps, .over = 13_us, .sent = 162'500},
                      {.rate = 100_Gbps, .over = 13_us, .sent = 162'500 * 12 / 10}};
  tell(hops);
  const auto before = window();
  EXPECT_NEAR(before, kBegins * 0.95 / 1.2 + 80, 1);
  hops[0].sent = 4 * 162'500;
  hops[1].sent = 1000;
  tell(hops);
  EXPECT_NEAR(window(), before * 0.95 + 80, 1);
}

TEST_F(Hpcc, RecordsThatSayTooLittleChangeNothing) {
  send();
  tell({});  // no telemetry
  HopChange hops[] = {{.rate = 100_Gbps, .over = 0_us, .sent = 195'000}};
  tell(hops);  // no time has passed
  hops[0] = {.rate = {}, .over = 13_us, .sent = 195'000};
  tell(hops);  // a port without a rate
  EXPECT_DOUBLE_EQ(window(), kBegins);
  hops[0].rate = 100_Gbps;
  tell(hops);
  EXPECT_NEAR(window(), kBegins * 0.95 / 1.2 + 80, 1);
}

TEST_F(Hpcc, ALossHalvesOnceInBaseRtt) {
  send();
  lose(1_us);
  EXPECT_DOUBLE_EQ(window(), kBegins / 2);
  EXPECT_DOUBLE_EQ(rate(), 50);
  time_out(13_us - 1_ps);
  EXPECT_DOUBLE_EQ(rate(), 50);
  time_out(1_ps);
  EXPECT_DOUBLE_EQ(rate(), 25);
  for (int i = 0; i < 30; ++i) lose(1_ms);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
  EXPECT_DOUBLE_EQ(window(), kPacket);
}

// From the halved window, by steps.
TEST_F(Hpcc, TheWayUpBeginsAnewBehindALoss) {
  send();
  answer(1);
  answer(1);
  for (int i = 0; i < 5; ++i) answer(0.9);
  const auto before = window();
  lose(1_us);
  EXPECT_NEAR(window(), before / 2, 1);
  answer(0.9);
  EXPECT_NEAR(window(), before / 2 + 80, 1);
}

TEST_F(Hpcc, WhateverComesTheBoundsHold) {
  for (std::uint64_t seed = 1; seed <= kWalks; ++seed) walk(*make(), seed, 1e8);
}

// The paper's rule for w_ai, for twice the number of flows: with the rule for this number the line is full.
TEST_F(Hpcc, FlowsAreEqualAndTheQueueIsNearlyEmpty) {
  for (const std::size_t flows : {2, 4, 8})
    for (const std::uint32_t every : {1u, 4u}) {
      set("w_ai", kBegins * 0.05 / static_cast<double>(2 * flows));
      set("base_rtt", every == 1 ? 13e6 : 14e6);  // plus the time that an acknowledgement waits for three packets
      Loop loop({.acknowledge_every = every}, flows, [&] { return make(); });
      loop.run_until(20_ms);
      loop.measure();
      loop.run_until(40_ms);
      EXPECT_GT(loop.total_rate(), 93) << flows << " flows, " << every;
      EXPECT_LT(loop.total_rate(), 99) << flows << " flows, " << every;
      EXPECT_LT(loop.unfairness(), 0.1) << flows << " flows, " << every;
      EXPECT_LT(loop.mean_queue(), 3 * kPacket) << flows << " flows, " << every;
      EXPECT_LT(loop.most_queue(), kBegins / 4) << flows << " flows, " << every;
      for (std::size_t i = 1; i < flows; ++i) loop.stop(i);
      loop.run_until(41_ms);
      loop.measure();
      loop.run_until(45_ms);
      EXPECT_NEAR(loop.rate(0), 96, 3) << flows << " flows, " << every;
    }
}

// The default of w_ai is for 16 flows. It makes fewer flows equal, too, with an acknowledgement of each packet and of
// each fourth packet. The telemetry is of the time at which a packet begins to leave. With telemetry of the packet's
// last bit, the queue that a small flow meets is longer than the queue of a large flow, and two flows stay at 3 to 1.
TEST_F(Hpcc, FewFlowsAreEqualByTheDefault) {
  set("w_ai", 500);
  for (const std::size_t flows : {2, 4, 8})
    for (const std::uint32_t every : {1u, 4u}) {
      Loop loop({.base_rtt = 11_us, .acknowledge_every = every}, flows, [&] { return make(); });
      loop.run_until(20_ms);
      loop.measure();
      loop.run_until(40_ms);
      EXPECT_GT(loop.total_rate(), 94) << flows << " flows, " << every;
      EXPECT_LT(loop.unfairness(), 0.1) << flows << " flows, " << every;
      EXPECT_LT(loop.mean_queue(), 3 * kPacket) << flows << " flows, " << every;
    }
}

// With w_ai for 100 flows the port is used, and the queue is short. Shares are not checked: with few flows of large
// packets, so small a step does not outweigh that a large flow meets a shorter queue, because its own packets are not
// in it.
TEST_F(Hpcc, SmallStepsUseThePort) {
  for (const std::size_t flows : {1, 8, 32}) {
    Loop loop({}, flows, [&] { return make(); });
    loop.run_until(20_ms);
    loop.measure();
    loop.run_until(30_ms);
    EXPECT_GT(loop.total_rate(), 90) << flows;
    EXPECT_LT(loop.mean_queue(), 4 * kPacket) << flows;
  }
}

}  // namespace
}  // namespace rnicsim::roce::hpcc_test

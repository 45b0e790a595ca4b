// SPDX-License-Identifier: Apache-2.0
// Swift: the window at computed points on both sides of the target, flow scaling, pacing, losses, and the closed loop.
#include "tests/unit/roce/congestion_loop.h"

namespace rnicsim::roce::swift_test {
namespace {

using namespace congestion_loop;

class Swift : public ControlTest {
 protected:
  Swift() : ControlTest("swift") {}

  void answer(Duration rtt, std::uint64_t bytes = kPacket, Duration after = 10_us) {
    acknowledge({.rtt = rtt, .bytes = bytes}, after);
  }
  // `inside`: the part of the round trip inside the receiver.
  void answer_from(Duration rtt, Duration inside, Duration after = 10_us) {
    acknowledge({.rtt = rtt, .bytes = kPacket, .endpoint = inside}, after);
  }
  // The target is then independent of the window: 23.053 us.
  void without_flow_scaling() { set("fs_range", 0); }
};

constexpr double kBegins = 250'000;  // bytes: 20 us at 100 Gb/s

TEST_F(Swift, BeginsWithTheWindowOfTheTarget) {
  EXPECT_DOUBLE_EQ(rate(), 100);
  EXPECT_DOUBLE_EQ(window(), kBegins);
  EXPECT_TRUE(control().wants_acknowledgements());
  EXPECT_FALSE(control().wants_marks());
}

// A packet's acknowledgement adds packet / cwnd packets.
TEST_F(Swift, BelowTheTargetTheWindowGrows) {
  without_flow_scaling();
  send();
  answer(23_us + 52_ns + 999_ps);
  const auto grown = kBegins + 4178.0 * 4178 / kBegins;
  EXPECT_NEAR(window(), grown, 1);
  answer(23_us + 53_ns);  // the target itself: no increase
  EXPECT_NEAR(window(), grown, 1);
  answer(20_us, 10 * kPacket);  // ten packets, ten times the increase
  EXPECT_NEAR(window(), grown + 10 * 4178.0 * 4178 / grown, 1);
}

TEST_F(Swift, AboveTheTargetTheWindowShrinksByTheExcess) {
  without_flow_scaling();
  send();
  answer(30_us);
  EXPECT_NEAR(window(), kBegins * (1 - 0.8 * (30 - 23.053) / 30), 1);
}

TEST_F(Swift, ARoundTripTakesNoMoreThanMaxMdf) {
  without_flow_scaling();
  send();
  answer(61_us);  // 0.8 x 0.622 = 0.498
  EXPECT_NEAR(window(), kBegins * (1 - 0.8 * (61 - 23.053) / 61), 1);
  answer(200_us, kPacket, 200_us);  // 0.8 x 0.885
  EXPECT_NEAR(window(), kBegins * (1 - 0.8 * (61 - 23.053) / 61) / 2, 1);
}

TEST_F(Swift, TheWindowShrinksOnceInARoundTrip) {
  without_flow_scaling();
  send();
  answer(100_us);
  EXPECT_NEAR(window(), kBegins / 2, 1);
  answer(100_us, kPacket, 100_us - 1_ps);
  EXPECT_NEAR(window(), kBegins / 2, 1);
  answer(100_us, kPacket, 1_ps);
  EXPECT_NEAR(window(), kBegins / 4, 1);
}

TEST_F(Swift, EachHopRaisesTheTarget) {
  without_flow_scaling();
  set("hops", 5);
  send();
  answer(35_us + 264_ns);  // 20 us + 5 x 3.053 us = 35.265 us
  EXPECT_GT(window(), kBegins);
  const auto grown = window();
  answer(35_us + 266_ns);
  EXPECT_LT(window(), grown);
}

// With a packet of 10,000 bytes the window is 25 packets: 100 us x (1/5 - 1/10) / (1/sqrt(0.1) - 1/10) = 3.26554 us.
TEST_F(Swift, SmallWindowsHaveAHigherTarget) {
  set("h", 0);
  send(10'000);
  answer(23_us + 275_ns, 1);
  const auto shrunk = kBegins * (1 - 0.8 * (23.275 - 23.26554) / 23.275);
  EXPECT_NEAR(window(), shrunk, 2);
  answer(23_us + 265_ns, 10'000);
  EXPECT_NEAR(window(), shrunk + 400, 2);
}

TEST_F(Swift, FlowScalingHasARange) {
  set("h", 0);
  send();
  for (int i = 0; i < 5; ++i) time_out(1_ms);
  answer(120_us, 1);  // 20 us + 100 us, at 0.001 packets
  EXPECT_DOUBLE_EQ(control().state({}).rate, 1e8);
  answer(120_us - 1_ps);
  EXPECT_NEAR(window(), 1.001 * kPacket, 1);
}

// Below one packet: packet x cwnd per round trip. From one packet on there is no pacing.
TEST_F(Swift, AWindowBelowAPacketIsAPace) {
  send();
  for (int i = 0; i < 5; ++i) lose(1_ms);
  EXPECT_NEAR(window(), kBegins / 32, 1);
  EXPECT_DOUBLE_EQ(rate(), 100);
  lose(1_ms);  // 3906 bytes in 20 us
  EXPECT_DOUBLE_EQ(window(), kPacket);
  EXPECT_NEAR(rate(), kBegins / 64 * 8 / 20e-6 / 1e9, 1e-9);
  answer(10_us);
  EXPECT_NEAR(window(), kBegins / 64 + kPacket, 1);
  EXPECT_DOUBLE_EQ(rate(), 100);
}

// An acknowledgement of more bytes than the reduced window counts as one window: it adds one packet.
TEST_F(Swift, OneAcknowledgementIsARoundTripAtMost) {
  send();
  for (int i = 0; i < 4; ++i) lose(1_ms);
  answer(10_us, 100'000);
  EXPECT_NEAR(window(), kBegins / 16 + kPacket, 1);
  for (int i = 0; i < 3; ++i) lose(1_ms);
  const auto before = (kBegins / 16 + kPacket) / 8;
  answer(10_us, 100'000);
  EXPECT_NEAR(window(), before + kPacket, 1);
}

TEST_F(Swift, TimeoutsInARowLeadToTheLeastWindow) {
  set("min_rate", 1);
  send();
  for (int i = 1; i < 5; ++i) {
    time_out(1_ms);
    EXPECT_NEAR(window(), kBegins / (1 << i), 1) << i;
  }
  time_out(1_ms);
  EXPECT_DOUBLE_EQ(window(), kPacket);
  EXPECT_NEAR(rate(), 0.001 * kPacket * 8 / 20e-6 / 1e9, 1e-9);
}

TEST_F(Swift, AnAnswerEndsTheRowOfTimeouts) {
  send();
  for (int i = 0; i < 4; ++i) time_out(1_ms);
  answer(0_us);  // unknown round trip
  const auto before = window();
  time_out(1_ms);
  EXPECT_NEAR(window(), before / 2, 1);
}

TEST_F(Swift, AnUnknownRoundTripChangesNothing) {
  send();
  answer(0_us, 100'000);
  EXPECT_DOUBLE_EQ(window(), kBegins);
}

// --- The window of the endpoint.
TEST_F(Swift, TheDelayInsideTheReceiverIsNotTheFabrics) {
  without_flow_scaling();
  EXPECT_TRUE(control().wants_endpoint_delay());
  send();
  answer_from(30_us, 8_us);  // 22 us of the fabric, below 23.053 us; 8 us of the endpoint, below 10 us
  EXPECT_GT(window(), kBegins);
}

TEST_F(Swift, TheSmallerWindowCounts) {
  without_flow_scaling();
  send();
  answer_from(30_us, 12_us);  // the fabric's window grows first; the endpoint's begins with it
  const auto grown = kBegins + 4178.0 * 4178 / kBegins;
  EXPECT_NEAR(window(), grown * (1 - 0.8 * 2 / 12), 1);
  answer_from(100_us, 5_us, 100_us);  // only the fabric's window shrinks, to a half
  EXPECT_NEAR(window(), grown / 2, 100);
}

TEST_F(Swift, ALongDelayInsideTakesNoMoreThanMaxMdfInARoundTrip) {
  without_flow_scaling();
  send();
  answer_from(60_us, 55_us);
  const auto once = window();
  EXPECT_NEAR(once, (kBegins + 4178.0 * 4178 / kBegins) / 2, 100);
  answer_from(60_us, 55_us, 60_us - 1_ps);
  EXPECT_DOUBLE_EQ(window(), once);
  answer_from(60_us, 55_us, 1_ps);
  EXPECT_NEAR(window(), once / 2, 1);
}

TEST_F(Swift, ALossShrinksBothWindows) {
  without_flow_scaling();
  send();
  answer_from(20_us, 5_us);
  const auto before = window();
  lose(1_ms);
  EXPECT_NEAR(window(), before / 2, 1);
  for (int i = 0; i < 5; ++i) time_out(1_ms);
  EXPECT_DOUBLE_EQ(window(), kPacket);
}

TEST_F(Swift, WithoutATargetTheEndpointHasNoWindow) {
  without_flow_scaling();
  set("endpoint_target", 0);
  send();
  EXPECT_FALSE(control().wants_endpoint_delay());
  answer_from(30_us, 29_us);
  EXPECT_NEAR(window(), kBegins * (1 - 0.8 * (30 - 23.053) / 30), 1);
}

TEST_F(Swift, WhateverComesTheBoundsHold) {
  for (std::uint64_t seed = 1; seed <= kWalks; ++seed) walk(*make(), seed, 1e8);
}

// Target of a flow's window if all flows have the same window.
double target_us(double window) {
  const auto cwnd = window / kPacket;
  return 23.053 + std::clamp(100 * (1 / std::sqrt(cwnd) - 0.1) / (1 / std::sqrt(0.1) - 0.1), 0.0, 100.0);
}

TEST_F(Swift, FlowsAreEqualAndTheDelayIsTheTarget) {
  for (const std::size_t flows : {2, 4, 8})
    for (const std::uint32_t every : {1u, 4u, 16u}) {
      Loop loop({.acknowledge_every = every}, flows, [&] { return make(); });
      loop.run_until(20_ms);
      loop.measure();
      loop.run_until(40_ms);
      EXPECT_GT(loop.total_rate(), 99) << flows << " flows, " << every;
      EXPECT_LT(loop.unfairness(), 0.1) << flows << " flows, " << every;
      if (every == 1) {
        const auto in_flight = loop.mean_queue() + 12.5e3 * 12;
        EXPECT_NEAR(in_flight / 12.5e3, target_us(in_flight / static_cast<double>(flows)), 1.5) << flows;
      }
      for (std::size_t i = 1; i < flows; ++i) loop.stop(i);
      loop.run_until(45_ms);
      loop.measure();
      loop.run_until(50_ms);
      EXPECT_GT(loop.rate(0), 99) << flows << " flows, " << every;
    }
}

// Less than one packet in flight per flow: base_rtt of 1 us, and 256 flows.
TEST_F(Swift, MoreFlowsThanPacketsPace) {
  set("base_target", 2e6);
  set("h", 0);
  set("fs_range", 20e6);
  set("min_rate", 1e6);
  Loop loop({.base_rtt = 1_us}, 256, [&] { return make(); });
  loop.run_until(20_ms);
  loop.measure();
  loop.run_until(60_ms);
  EXPECT_GT(loop.total_rate(), 95);
  EXPECT_LT(loop.mean_queue() / 12.5e3, 25);  // us
}

}  // namespace
}  // namespace rnicsim::roce::swift_test

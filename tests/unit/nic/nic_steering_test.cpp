// SPDX-License-Identifier: Apache-2.0
// Receiver of a received frame, and its time.
#include <gtest/gtest.h>

#include <systemc>
#include <vector>

#include "model/base/kernel.h"
#include "model/nic/packets/receive/steering.h"
#include "model/roce/packet.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::nic {
namespace {

using namespace rnicsim::literals;

constexpr auto kLatency = 100_ns;
constexpr std::size_t kEtherType = 12;
constexpr auto kIpv4Protocol = roce::kEthernetBytes + 9, kIpv4Checksum = kIpv4Protocol + 1,
               kUdpDestination = roce::kEthernetBytes + roce::kIpv4Bytes + 2;

class SteeringTest : public ::testing::Test {
 protected:
  SteeringTest() : steering_((sc_core::sc_get_curr_simcontext()->reset(), "steering"), kLatency, flows_) {
    steering_.roce.bind([this](const FrameIn& came) { taken_.push_back({now(), came.frame.size()}); });
    steering_.raw.bind([this](const FrameIn&) { raw_.push_back(now()); });
    steering_.sniffed.bind([this](const Frame&) { ++sniffed_; });
  }
  // A frame with `payload` bytes. `at` not 0: the byte at this offset is `value`.
  static std::vector<std::byte> frame(std::uint32_t payload, std::size_t at = 0, unsigned value = 0) {
    roce::FrameAddresses addresses;
    addresses.source = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    addresses.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    roce::Headers headers;
    headers.bth.opcode = roce::Opcode::send_only;
    auto bytes = sim::replay::test::frame_of(addresses, headers, std::vector<std::byte>(payload));
    if (at != 0) bytes[at] = std::byte(value);
    return bytes;
  }
  void receive(const std::vector<std::byte>& bytes, Duration delay) {
    steering_.receive({Frame::of(Payload::copy_of(bytes))}, delay);
  }
  void run() { sc_core::sc_start(1, sc_core::SC_US); }

  struct Taken {
    Duration at;
    std::uint32_t bytes;
  };
  FlowTable flows_{{.rules = 2, .counters = 0}};
  Steering steering_;
  std::vector<Taken> taken_;
  std::vector<Duration> raw_;
  int sniffed_ = 0;
};

TEST_F(SteeringTest, WhoSniffsGetsRoceToo) {
  receive(frame(4), 10_ns);
  run();
  EXPECT_EQ(sniffed_, 0);
  ASSERT_EQ(flows_.add(1, {.kind = FlowKind::sniffer, .destination = {7}}), FlowTable::Result::done);
  receive(frame(4), 10_ns);
  run();
  EXPECT_EQ(sniffed_, 1);
  EXPECT_EQ(taken_.size(), 2u);
}

TEST_F(SteeringTest, RoceGoesOnInOrderBehindTheLatency) {
  const auto first = frame(4), second = frame(8);
  receive(first, 10_ns);
  receive(second, 30_ns);
  run();
  ASSERT_EQ(taken_.size(), 2u);
  EXPECT_EQ(taken_[0].at.ps, (10_ns + kLatency).ps);
  EXPECT_EQ(taken_[0].bytes, first.size());
  EXPECT_EQ(taken_[1].at.ps, (30_ns + kLatency).ps);
  EXPECT_EQ(taken_[1].bytes, second.size());
  EXPECT_EQ(steering_.counters().roce, 2u);
  EXPECT_TRUE(raw_.empty());
}

TEST_F(SteeringTest, OtherProtocolsAreDroppedAndCounted) {
  receive(frame(4, kEtherType, 0x86), 0_ns);
  receive(frame(4, kIpv4Protocol, 6), 10_ns);
  receive(frame(4, kUdpDestination, 0), 20_ns);
  receive(std::vector<std::byte>(60), 30_ns);
  run();
  EXPECT_TRUE(taken_.empty());
  EXPECT_EQ(steering_.counters().not_roce, 4u);
  ASSERT_EQ(raw_.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(raw_[i].ps, (10_ns * std::int64_t(i) + kLatency).ps);
}

// The transport counts damaged frames by cause.
TEST_F(SteeringTest, WhatIsDamagedMayBeRoce) {
  receive(frame(4, kIpv4Checksum, 0xff), 0_ns);
  receive(frame(4, roce::kEthernetBytes, 0x46), 0_ns);
  receive({}, 0_ns);
  auto truncated = frame(4);
  truncated.resize(roce::kEthernetBytes + 3);
  receive(truncated, 0_ns);
  run();
  EXPECT_EQ(taken_.size(), 4u);
  EXPECT_EQ(steering_.counters().not_roce, 0u);
}

TEST_F(SteeringTest, AResetForgetsWhatIsOnItsWay) {
  receive(frame(4), 10_ns);
  steering_.receive_own(Frame::of(Payload::copy_of(frame(4))), 10_ns);
  steering_.reset();
  run();
  EXPECT_TRUE(taken_.empty());
}

}  // namespace
}  // namespace rnicsim::nic

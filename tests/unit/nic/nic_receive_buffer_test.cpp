// SPDX-License-Identifier: Apache-2.0
// The receive buffer: its content, frames without room, and pauses for the sender.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "model/base/kernel.h"
#include "model/nic/packets/receive/receive_buffer.h"

namespace rnicsim::nic::receive_buffer_test {
namespace {

constexpr std::uint32_t kBytes = 1000;  // bytes of a frame
constexpr std::uint8_t kPriority = 3;

class ReceiveBufferTest : public ::testing::Test {
 protected:
  void make(std::uint32_t pfc, std::uint32_t quanta = 65535) {
    sc_core::sc_get_curr_simcontext()->reset();
    buffer_ = std::make_unique<ReceiveBuffer>(
        ReceiveBufferParams{
            .size = ByteCount{20'000}, .pfc = pfc, .xoff = ByteCount{8'000}, .xon = ByteCount{4'000}, .quanta = quanta},
        PriorityMap(), 100_Gbps);
    buffer_->draining = [this] { return draining_; };
    buffer_->pause.bind([this](const PriorityPause& pause) { said_.push_back({now(), pause}); });
  }
  void TearDown() override {
    held_.clear();
    buffer_.reset();
  }
  // An IPv4 frame with a class selector.
  static Frame frame(std::uint8_t priority = kPriority) {
    std::array<std::byte, kBytes> bytes{};
    bytes[12] = std::byte{8};
    bytes[15] = std::byte(priority << 5);
    return Frame::of(Payload::copy_of(bytes));
  }
  bool take(std::uint8_t priority = kPriority) {
    auto hold = buffer_->take(frame(priority));
    if (!hold) return false;
    held_.push_back(std::move(*hold));
    return true;
  }
  void let_go(std::size_t frames) { held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(frames)); }
  void run(double us) { sc_core::sc_start(us, sc_core::SC_US); }

  struct Said {
    Duration at;
    PriorityPause pause;
  };
  std::unique_ptr<ReceiveBuffer> buffer_;
  std::vector<BufferHold> held_;
  std::uint64_t draining_ = 0;
  std::vector<Said> said_;
};

TEST_F(ReceiveBufferTest, WhatFindsNoRoomIsLostAndCounted) {
  make(0);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(take());
  EXPECT_FALSE(take());
  let_go(1);
  EXPECT_TRUE(take());
  EXPECT_FALSE(take());
  EXPECT_EQ(buffer_->counters().rx_discards_phy, 2u);
  EXPECT_EQ(buffer_->counters().most_bytes, 20'000u);
  EXPECT_TRUE(said_.empty());
}

TEST_F(ReceiveBufferTest, WhatWaitsForPcieTakesRoom) {
  make(0);
  draining_ = 19'001;
  EXPECT_FALSE(take());
  draining_ = 19'000;
  EXPECT_TRUE(take());
}

TEST_F(ReceiveBufferTest, ACopyOfAHoldTakesNone) {
  make(0);
  EXPECT_TRUE(take());
  {
    const auto copy = held_.front();
    auto moved = std::move(held_.front());
    moved = BufferHold(copy);
  }
  held_.clear();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(take());
}

TEST_F(ReceiveBufferTest, TheSenderPausesFromXoffUntilXon) {
  make(1 << kPriority);
  for (int i = 0; i < 7; ++i) take();
  EXPECT_TRUE(said_.empty());
  take();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].pause.enabled, 1 << kPriority);
  EXPECT_EQ(said_[0].pause.quanta[kPriority], 65535);
  take();
  let_go(4);
  run(1);
  EXPECT_EQ(said_.size(), 1u);
  let_go(1);
  run(1);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[1].pause.enabled, 1 << kPriority);
  EXPECT_EQ(said_[1].pause.quanta[kPriority], 0);
  EXPECT_EQ(buffer_->counters().tx_pause, 2u);
}

// For every pause time, however short.
TEST_F(ReceiveBufferTest, ItIsToldAgainBeforeThePauseIsOver) {
  for (const std::uint32_t quanta : {65535u, 1000u, 100u, 20u}) {
    TearDown();
    said_.clear();
    make(1 << kPriority, quanta);
    const auto pause = (100_Gbps).time_for({quanta * PriorityPause::kQuantumBytes});
    for (int i = 0; i < 8; ++i) take();
    run(4 * static_cast<double>(pause.ps) / 1e6);
    ASSERT_GE(said_.size(), 4u) << quanta;
    for (std::size_t i = 1; i < said_.size(); ++i) {
      EXPECT_LE(said_[i].at - said_[i - 1].at, pause) << quanta;
      EXPECT_GE((said_[i].at - said_[i - 1].at).ps, pause.ps / 2) << quanta;
    }
  }
}

TEST_F(ReceiveBufferTest, OtherPrioritiesAreLostInstead) {
  make(1 << kPriority);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(0));
  EXPECT_TRUE(said_.empty());
}

TEST_F(ReceiveBufferTest, AResetForgetsThePauses) {
  make(1 << kPriority);
  for (int i = 0; i < 8; ++i) take();
  held_.clear();
  buffer_->reset();
  run(5);
  EXPECT_EQ(said_.size(), 1u);
  for (int i = 0; i < 8; ++i) take();
  EXPECT_EQ(said_.size(), 2u);
}

}  // namespace
}  // namespace rnicsim::nic::receive_buffer_test

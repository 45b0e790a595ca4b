// SPDX-License-Identifier: Apache-2.0
// A NIC's port, and pauses that the other end of its cable requests.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/ports/pause_frame.h"
#include "model/nic/packets/port.h"

namespace rnicsim::nic::port_test {
namespace {

constexpr Duration kCable = 90_ns;
constexpr std::uint8_t kPriority = 3;

class PortTest : public ::testing::Test {
 protected:
  void make(std::uint32_t pfc) {
    sc_core::sc_get_curr_simcontext()->reset();
    PortParams params;
    params.pfc = pfc;
    port_ = std::make_unique<Port>("port", params);
    port_->frame_out.bind([this](Frame&& frame) { left_.push_back({frame.id(), now() - time()}); });
    port_->frame_in.bind([this](Frame&&, Duration) { ++received_; });
    port_->left.bind([this](std::uint64_t) { ++told_; });
    port_->scheduled.subscribe([this](const FrameScheduled& frame) {
      scheduled_.push_back({frame.frame, frame.begins});
    });
    actions_ = std::make_unique<EventQueue<std::function<void()>>>([this] {
      std::function<void()> action;
      while (actions_->pop_due(action)) action();
    });
  }
  void TearDown() override {
    port_.reset();
    actions_.reset();
  }
  // An IPv4 frame with DSCP 24.
  void send(std::uint64_t id, Duration ready) {
    std::array<std::byte, 100> bytes{};
    bytes[12] = std::byte{8};
    bytes[15] = std::byte{24 << 2};
    port_->send(Frame::of(Payload::copy_of(bytes), {}, {}, id), ready);
  }
  static Duration time() { return PortParams{}.rate.time_for({100 + 24}); }
  void receive_pause(std::uint16_t quanta) {
    PriorityPause pause{.enabled = 1 << kPriority};
    pause.quanta[kPriority] = quanta;
    port_->receive(to_frame(pause, {}), kCable);
  }
  void at(Duration time, std::function<void()> action) { actions_->push(time, std::move(action)); }
  void run() { sc_core::sc_start(1, sc_core::SC_MS); }

  using Began = std::pair<std::uint64_t, Duration>;
  std::unique_ptr<Port> port_;
  std::unique_ptr<EventQueue<std::function<void()>>> actions_;
  std::vector<Began> left_, scheduled_;
  int received_ = 0;
  int told_ = 0;  // reports that a frame of the pipeline has left
};

// From the arrival of the pause's last bit, for the pause's time.
TEST_F(PortTest, APauseActsOnArrival) {
  make(1 << kPriority);
  at(0_ns, [&] { receive_pause(10); });
  at(0_ns, [&] { send(1, kCable - 1_ps); });
  at(0_ns, [&] { send(2, kCable - 1_ps); });
  run();
  EXPECT_EQ(left_, (std::vector<Began>{{1, kCable - 1_ps}, {2, kCable + 10 * 5120_ps}}));
  EXPECT_EQ(scheduled_, left_);
  EXPECT_EQ(received_, 0);
  const auto counters = port_->counters();
  EXPECT_EQ(counters.rx_frames, 1u);
  EXPECT_EQ(counters.rx_pause, 1u);
  EXPECT_EQ(counters.tx_paused_ps, 51'200u);
  EXPECT_EQ(counters.tx_wait_ps, 51'201u);
  EXPECT_EQ(counters.tx_most_bytes, 200u);
}

TEST_F(PortTest, AnotherEndsIt) {
  make(1 << kPriority);
  at(0_ns, [&] { receive_pause(65535); });
  at(1_us, [&] { send(1, 0_ns); });
  at(2_us, [&] { receive_pause(0); });
  run();
  EXPECT_EQ(left_, (std::vector<Began>{{1, 2_us + kCable}}));
}

TEST_F(PortTest, OneThatIsToldToObeyOthersDoesNot) {
  for (const std::uint32_t pfc : {0, 0xff & ~(1 << kPriority)}) {
    TearDown();
    left_.clear();
    make(pfc);
    at(0_ns, [&] { receive_pause(65535); });
    at(1_us, [&] { send(1, 0_ns); });
    run();
    EXPECT_EQ(left_, (std::vector<Began>{{1, 1_us}}));
    EXPECT_EQ(received_, 0);
    EXPECT_EQ(port_->counters().rx_pause, 1u);
  }
}

// The port's own pause frame does not belong to the pipeline: it is not reported as sent.
TEST_F(PortTest, ItsOwnPauseGoesAheadOfAll) {
  make(0);
  at(0_ns, [&] {
    send(1, 0_ns);
    send(2, 0_ns);
  });
  at(1_ns, [&] { port_->send_control(to_frame(PriorityPause{.enabled = 1}, {})); });
  run();
  ASSERT_EQ(left_.size(), 3u);
  EXPECT_EQ(left_[0].first, 1u);
  EXPECT_EQ(left_[2].first, 2u);
  EXPECT_EQ(told_, 2);
}

TEST_F(PortTest, AResetForgetsPauses) {
  make(1 << kPriority);
  at(0_ns, [&] { receive_pause(65535); });
  at(1_us, [&] {
    send(1, 0_ns);
    receive_pause(65535);
    port_->reset();
    send(2, 0_ns);
  });
  run();
  EXPECT_EQ(left_, (std::vector<Began>{{2, 1_us}}));
}

// Counters with mlx5's names: pauses of one priority, and the time for which they were obeyed.
TEST_F(PortTest, CountsPausesByPriority) {
  make(1 << kPriority);
  std::vector<std::pair<std::uint8_t, Duration>> told;
  port_->paused.subscribe([&](const PriorityPaused& paused) { told.push_back({paused.priority, paused.until}); });
  at(0_ns, [&] { receive_pause(1000); });
  at(2_us, [&] { receive_pause(0); });
  at(3_us, [&] {
    PriorityPause other{.enabled = 1 << 4 | 1 << 5};
    other.quanta[4] = 1000;
    port_->receive(to_frame(other, {}), kCable);
    port_->send_control(to_frame(PriorityPause{.enabled = 1 << kPriority | 1 << 7}, {}));
  });
  run();
  const auto counters = port_->counters();
  const auto of = [&](std::size_t priority) {
    const auto& pauses = counters.pauses[priority];
    return std::array{pauses.rx_pause, pauses.tx_pause, pauses.rx_pause_duration};
  };
  EXPECT_EQ(of(kPriority), (std::array<Counter, 3>{2, 1, 2}));
  EXPECT_EQ(of(4), (std::array<Counter, 3>{1, 0, 0}));  // the port does not obey this priority
  EXPECT_EQ(of(5), (std::array<Counter, 3>{1, 0, 0}));
  EXPECT_EQ(of(7), (std::array<Counter, 3>{0, 1, 0}));
  EXPECT_EQ(of(0), (std::array<Counter, 3>{}));
  EXPECT_EQ(counters.tx_paused_ps, 2'000'000u);
  EXPECT_EQ(told, (std::vector<std::pair<std::uint8_t, Duration>>{{kPriority, kCable + 1000 * 5120_ps},
                                                                  {kPriority, 2_us + kCable}}));
}

// Other control frames, too, end at this port.
TEST_F(PortTest, NoControlFrameGoesFurther) {
  make(0xff);
  at(0_ns, [&] {
    std::array<std::byte, 60> bytes{};
    std::ranges::copy(std::array{std::byte{1}, std::byte{0x80}, std::byte{0xc2}}, bytes.begin());
    bytes[5] = std::byte{1};
    port_->receive(Frame::of(Payload::copy_of(bytes)), kCable);
    bytes[5] = std::byte{2};
    port_->receive(Frame::of(Payload::copy_of(bytes)), kCable);
  });
  run();
  EXPECT_EQ(received_, 1);
  EXPECT_EQ(port_->counters().rx_pause, 0u);
}

}  // namespace
}  // namespace rnicsim::nic::port_test

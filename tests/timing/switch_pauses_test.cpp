// SPDX-License-Identifier: Apache-2.0
// Full buffers of a switch, to the byte: frames that it drops, pauses that it sends, and pauses that it obeys (IEEE
// 802.1Qbb).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/fabric/switch.h"

namespace rnicsim::fabric::switch_pauses_test {
namespace {

constexpr std::uint32_t kBytes = 1000;
constexpr Duration kLatency = 300_ns, kCable = 100_ns;
constexpr std::uint32_t kOut = 2;  // port of the only station
constexpr std::uint8_t kLossless = 1 << 3;
constexpr Duration kTime = (100_Gbps).time_for({kBytes + 24});
constexpr Duration kPauseTime = (100_Gbps).time_for({84_B});
constexpr Duration kTransit = kCable + kLatency;  // time until the last bit of a frame that meets no queue leaves

struct Seen {
  std::size_t port;
  Duration at;
  std::uint64_t id;  // 0: a pause
  std::uint16_t quanta = 0;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "port " << seen.port << " at " << seen.at.ps << ": " << seen.id << ", quanta " << seen.quanta;
}

class SwitchPauses : public ::testing::Test {
 protected:
  using Pauses = std::vector<Seen>;

  // Builds a new switch.
  void make(const SwitchParams& params) {
    box_.reset();
    actions_.reset();
    left_.clear();
    pauses_.clear();
    sc_core::sc_get_curr_simcontext()->reset();
    Stations stations;
    stations.add({2, 0, 0, 0, 0, 1}, {0, kOut});
    box_ = std::make_unique<Switch>("box", params,
                                    SwitchWiring{.number = 0,
                                                 .lines = std::vector<LineTiming>(3),
                                                 .stations = std::make_shared<const Stations>(stations),
                                                 .way_to = {0},
                                                 .ways = {{}},
                                                 .flooded = {}});
    for (std::size_t port = 0; port < 3; ++port)
      box_->out(port).bind([this, port](Frame&& frame) {
        const auto pause = priority_pause_of(frame);
        EXPECT_EQ(pause ? pause->enabled : kLossless, kLossless);
        (pause ? pauses_ : left_).push_back({port, now(), frame.id(), pause ? pause->quanta[3] : std::uint16_t{0}});
      });
    actions_ = std::make_unique<EventQueue<std::function<void()>>>([this] {
      std::function<void()> action;
      while (actions_->pop_due(action)) action();
    });
  }
  static SwitchParams without_loss(ByteCount xoff, ByteCount xon = 0_B, ByteCount headroom = 1_MiB) {
    return {.latency = kLatency, .port_buffer = 1_B, .pfc = {kLossless, xoff, xon, headroom}, .priority = {}};
  }
  // Gives the cable an IPv4 frame as its last bit leaves the sender.
  void receive(std::size_t from, std::uint64_t id, std::uint8_t dscp = 24) {
    std::array<std::byte, kBytes> bytes{};
    bytes[0] = std::byte{2};
    bytes[5] = std::byte{1};
    bytes[12] = std::byte{8};
    bytes[15] = std::byte(dscp << 2);
    box_->receive(from, Frame::of(Payload::copy_of(bytes), {}, {}, id), kCable);
  }
  void receive_pause(std::size_t from, std::uint8_t enabled, std::uint16_t quanta) {
    PriorityPause pause{.enabled = enabled};
    pause.quanta.fill(quanta);
    box_->receive(from, to_frame(pause, {}), kCable);
  }
  void at(Duration time, std::function<void()> action) { actions_->push(time, std::move(action)); }
  void run() { sc_core::sc_start(1, sc_core::SC_MS); }
  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> ids;
    for (const auto& seen : left_) ids.push_back(seen.id);
    return ids;
  }

  std::unique_ptr<Switch> box_;
  std::unique_ptr<EventQueue<std::function<void()>>> actions_;
  std::vector<Seen> left_, pauses_;
};

TEST_F(SwitchPauses, AFullPortDropsTheNextFrame) {
  make({.latency = kLatency, .port_buffer = {2 * kBytes}, .pfc = {}, .priority = {}});
  for (std::uint64_t id = 1; id <= 3; ++id) receive(0, id);
  run();
  EXPECT_EQ(ids(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(box_->counters().tx_discards, 1u);
  EXPECT_EQ(box_->counters().most_bytes, 2 * kBytes);
}

TEST_F(SwitchPauses, WithAByteLessItIsFullOneFrameSooner) {
  make({.latency = kLatency, .port_buffer = {2 * kBytes - 1}, .pfc = {}, .priority = {}});
  for (std::uint64_t id = 1; id <= 3; ++id) receive(0, id);
  run();
  EXPECT_EQ(ids(), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(box_->counters().tx_discards, 2u);
}

// A frame needs buffer when its last bit arrives, one cable delay after the cable got the frame: a frame that has left
// by then needs none.
TEST_F(SwitchPauses, RoomIsNeededOnArrival) {
  for (const bool in_time : {true, false}) {
    make({.latency = kLatency, .port_buffer = {kBytes}, .pfc = {}, .priority = {}});
    at(0_ns, [&] { receive(0, 1); });
    at(kTransit - kCable + (in_time ? 1_ps : 0_ps - 1_ps), [&] { receive(1, 2); });
    run();
    EXPECT_EQ(ids(), in_time ? (std::vector<std::uint64_t>{1, 2}) : (std::vector<std::uint64_t>{1}));
    EXPECT_EQ(box_->counters().tx_discards, in_time ? 0u : 1u);
  }
}

TEST_F(SwitchPauses, AtXoffTheSenderIsToPause) {
  make(without_loss({2 * kBytes}, {kBytes}));
  receive(0, 1);
  receive(0, 2);
  run();
  EXPECT_EQ(left_, (Pauses{{kOut, kTransit, 1}, {kOut, kTransit + kTime, 2}}));
  // Pause when the second frame's last bit arrived; resume when the first frame's last bit left.
  EXPECT_EQ(pauses_, (Pauses{{0, kCable + kPauseTime, 0, 65535}, {0, kTransit + kPauseTime, 0, 0}}));
  const auto counters = box_->counters();
  EXPECT_EQ(counters.tx_pause, 2u);
  EXPECT_EQ(counters.tx_discards + counters.rx_discards, 0u);
}

TEST_F(SwitchPauses, AByteBelowXoffNobodyPauses) {
  make(without_loss({2 * kBytes + 1}, {kBytes}));
  receive(0, 1);
  receive(0, 2);
  receive(1, 3);  // the other port has its own count
  receive(1, 4);
  run();
  EXPECT_EQ(left_.size(), 4u);
  EXPECT_EQ(pauses_, (Pauses{}));
}

TEST_F(SwitchPauses, XonIsAtItsByte) {
  make(without_loss({3 * kBytes}, {kBytes - 1}));
  for (std::uint64_t id = 1; id <= 3; ++id) receive(0, id);
  run();
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[1].at, kTransit + 2 * kTime + kPauseTime);  // all frames have left
}

TEST_F(SwitchPauses, OtherPrioritiesMayBeLost) {
  auto params = without_loss({2 * kBytes});
  params.port_buffer = {kBytes};
  params.jitter = SwitchParams::kJitterWords[1];  // would begin if frames were not lost
  make(params);
  for (std::uint64_t id = 1; id <= 3; ++id) receive(0, id, 0);
  receive(0, 4);
  run();
  EXPECT_EQ(ids(), (std::vector<std::uint64_t>{4, 1}));  // DSCP 24 has the more urgent priority
  EXPECT_EQ(box_->counters().tx_discards, 2u);
  EXPECT_EQ(pauses_, (Pauses{}));
}

TEST_F(SwitchPauses, HeadroomToTheByte) {
  for (const std::uint32_t headroom : {kBytes - 1, kBytes}) {
    make(without_loss({2 * kBytes}, {kBytes}, {headroom}));
    for (std::uint64_t id = 1; id <= 4; ++id) receive(0, id);
    run();
    EXPECT_EQ(box_->counters().rx_discards, headroom == kBytes ? 1u : 2u);
  }
}

// The last bit of the pause arrives after the cable's delay; a frame whose transmission began before that still leaves.
TEST_F(SwitchPauses, ItsOwnPortPausesOnArrival) {
  for (const bool in_time : {true, false}) {
    make(without_loss(1_MiB));
    const auto begins = kTransit - kTime;
    at(0_ns, [&] { receive(0, 1); });
    at(begins - kCable + (in_time ? 0_ps - 1_ps : 1_ps), [&] { receive_pause(kOut, kLossless, 100); });
    run();
    const auto pause = begins - 1_ps + 100 * 5120_ps;
    EXPECT_EQ(left_, (Pauses{{kOut, in_time ? pause + kTime : kTransit, 1}}));
    EXPECT_EQ(box_->counters().rx_pause, 1u);
    EXPECT_EQ(box_->counters().tx_paused_ps, 512'000u);
  }
}

TEST_F(SwitchPauses, PausesOfOtherPrioritiesAndOfPortsWithoutThemAreNotObeyed) {
  make(without_loss(1_MiB));
  receive_pause(kOut, static_cast<std::uint8_t>(~kLossless), 65535);
  receive(0, 1);
  run();
  EXPECT_EQ(left_, (Pauses{{kOut, kTransit, 1}}));
  EXPECT_EQ(box_->counters().rx_pause, 1u);
}

// A pause of a lossy priority is not obeyed: the two ends have not agreed on it.
TEST_F(SwitchPauses, APauseOfAPriorityThatMayBeLostStopsNobody) {
  auto params = without_loss(1_MiB);
  params.port_buffer = 1_MiB;
  make(params);
  receive_pause(kOut, 0xff, 100);
  receive(0, 1, 0);
  receive(1, 2);
  run();
  const Duration end = kCable + 100 * 5120_ps;
  EXPECT_EQ(left_, (Pauses{{kOut, kTransit, 1}, {kOut, end + kTime, 2}}));
  EXPECT_EQ(box_->counters().tx_paused_ps, 512'000u);
}

// A pause ends by itself unless it is repeated.
TEST_F(SwitchPauses, ALongPauseIsAskedForAgain) {
  auto params = without_loss({kBytes});
  params.pfc.quanta = 1000;
  make(params);
  receive_pause(kOut, kLossless, 2200);
  receive(0, 1);
  run();
  const Duration half = 500 * 5120_ps, first = kCable + kPauseTime, end = kCable + 2200 * 5120_ps + kTime;
  EXPECT_EQ(pauses_, (Pauses{{0, first, 0, 1000},
                             {0, first + half, 0, 1000},
                             {0, first + 2 * half, 0, 1000},
                             {0, first + 3 * half, 0, 1000},
                             {0, first + 4 * half, 0, 1000},
                             {0, end + kPauseTime, 0, 0}}));
  EXPECT_EQ(left_, (Pauses{{kOut, end, 1}}));
}

TEST_F(SwitchPauses, PortsTellHowBusyTheyWere) {
  make({.latency = kLatency, .priority = {}});
  receive(0, 1);
  receive(1, 2);
  run();
  const auto counters = box_->counters();
  EXPECT_EQ(counters.tx_busy_ps, static_cast<Counter>((2 * kTime).ps));
  EXPECT_EQ(counters.port_busy_ps, (std::vector<Counter>{0, 0, static_cast<Counter>((2 * kTime).ps)}));
  EXPECT_EQ(counters.tx_wait_ps, static_cast<Counter>(kTime.ps));
}

}  // namespace
}  // namespace rnicsim::fabric::switch_pauses_test

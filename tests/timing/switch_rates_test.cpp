// SPDX-License-Identifier: Apache-2.0
// Departure times of frames in a switch whose ports and cables differ, by the formulas of docs/timing.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/fabric/switch.h"

namespace rnicsim::fabric::switch_rates_test {
namespace {

constexpr std::uint32_t kBytes = 1000;
constexpr Duration kLatency = 300_ns;

class SwitchRates : public ::testing::Test {
 protected:
  // Builds a new switch; all frames go to the station at the last port, or at the given one.
  void make(std::vector<LineTiming> lines) {
    const auto last = static_cast<std::uint32_t>(lines.size() - 1);
    make(std::move(lines), last);
  }
  void make(std::vector<LineTiming> lines, std::uint32_t station) {
    box_.reset();
    left_.clear();
    sc_core::sc_get_curr_simcontext()->reset();
    Stations stations;
    stations.add({2, 0, 0, 0, 0, 1}, {0, station});
    const auto ports = lines.size();
    box_ = std::make_unique<Switch>("box", SwitchParams{kLatency},
                                    SwitchWiring{.number = 0,
                                                 .lines = std::move(lines),
                                                 .stations = std::make_shared<const Stations>(stations),
                                                 .way_to = {0},
                                                 .ways = {{}},
                                                 .flooded = {}});
    for (std::size_t port = 0; port < ports; ++port)
      box_->out(port).bind([this](Frame&& frame) { left_.push_back({frame.id(), now()}); });
  }
  void receive(std::size_t from, std::uint64_t id, Duration delay) {
    std::array<std::byte, kBytes> bytes{};
    bytes[0] = std::byte{2};
    bytes[5] = std::byte{1};
    box_->receive(from, Frame::of(Payload::copy_of(bytes), {}, {}, id), delay);
  }
  static LineTiming line(BitRate rate) { return {rate, 24_B, 60_B}; }
  static Duration time(BitRate rate) { return rate.time_for({kBytes + 24}); }

  struct Left {
    std::uint64_t id;
    Duration at;
    bool operator==(const Left&) const = default;
  };
  std::unique_ptr<Switch> box_;
  std::vector<Left> left_;
};

// Time from the arrival to the departure of the last bit: the first frame waits for the latency alone.
TEST_F(SwitchRates, AlikeIsCutThrough) {
  make({line(100_Gbps), line(100_Gbps)});
  receive(0, 1, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns + kLatency}}));
}

TEST_F(SwitchRates, FromFastToSlowIsCutThrough) {
  make({line(200_Gbps), line(100_Gbps)});
  receive(0, 1, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns - time(200_Gbps) + kLatency + time(100_Gbps)}}));
}

// Otherwise the transmitter would run out of data within the frame.
TEST_F(SwitchRates, FromSlowToFastTheFrameIsWholeFirst) {
  make({line(100_Gbps), line(200_Gbps)});
  receive(0, 1, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns + kLatency + time(200_Gbps)}}));
}

// All ports decide whether the rates are equal, not only the first and the last.
TEST_F(SwitchRates, OneFastPortAmongSlowOnesGetsTheFrameWhole) {
  for (const std::uint32_t fast : {0u, 1u, 2u}) {
    std::vector<LineTiming> lines(3, line(100_Gbps));
    lines[fast] = line(200_Gbps);
    const std::uint32_t slow = fast == 0 ? 1 : 0;
    make(lines, fast);
    receive(slow, 1, 100_ns);
    sc_core::sc_start(10, sc_core::SC_US);
    EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns + kLatency + time(200_Gbps)}})) << fast;
  }
}

// A frame between two ports of one rate is cut through, whatever other ports the switch has.
TEST_F(SwitchRates, AlikeIsCutThroughBesideOthers) {
  for (const auto other : {200_Gbps, 40_Gbps}) {
    make({line(100_Gbps), line(other), line(100_Gbps)}, 2);
    receive(0, 1, 100_ns);
    sc_core::sc_start(10, sc_core::SC_US);
    EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns + kLatency}}));
  }
}

// With equal rates, the port with more bytes between frames is the slower one.
TEST_F(SwitchRates, BytesBetweenFramesCountAsWell) {
  const LineTiming longer{100_Gbps, 64_B, 60_B};
  make({longer, line(100_Gbps)});
  receive(0, 1, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(left_, (std::vector<Left>{{1, 100_ns + kLatency + time(100_Gbps)}}));
}

TEST_F(SwitchRates, ASlowPortSendsOneBehindTheOther) {
  make({line(200_Gbps), line(100_Gbps)});
  for (std::uint64_t id = 1; id <= 3; ++id) receive(0, id, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  const Duration first = 100_ns - time(200_Gbps) + kLatency + time(100_Gbps);
  EXPECT_EQ(left_, (std::vector<Left>{{1, first}, {2, first + time(100_Gbps)}, {3, first + 2 * time(100_Gbps)}}));
}

// A frame on a long cable is sent earlier and arrives later: it delays no other frame until it arrives.
TEST_F(SwitchRates, ALongCableKeepsNobodyWaiting) {
  make({line(100_Gbps), line(100_Gbps), line(100_Gbps)});
  receive(0, 1, 5_us);
  receive(1, 2, 100_ns);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(left_, (std::vector<Left>{{2, 100_ns + kLatency}, {1, 5_us + kLatency}}));
}

}  // namespace
}  // namespace rnicsim::fabric::switch_rates_test

// SPDX-License-Identifier: Apache-2.0
// Output ports of a switch's frames.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/base/event_queue.h"
#include "model/fabric/flow_hash.h"
#include "model/fabric/switch.h"
#include "sim/config/param_list.h"

namespace rnicsim::fabric::switch_test {
namespace {

using Mac = std::array<std::uint8_t, kMacBytes>;
constexpr Mac kHere{2, 0, 0, 0, 0, 9};    // at port 2
constexpr Mac kThere{2, 0, 0, 0, 0, 10};  // behind another switch: ports 0, 1 and 3
constexpr Mac kIsland{2, 0, 0, 0, 0, 11};
constexpr Mac kNobody{2, 0, 0, 0, 0, 8};
constexpr Mac kGroup{1, 0, 0x5e, 1, 2, 3};

Frame frame_of(std::vector<std::uint8_t> bytes, std::size_t size = 100, std::uint64_t id = 0) {
  bytes.resize(size);
  return Frame::of(Payload::copy_of(std::as_bytes(std::span(bytes))), {}, {}, id);
}
Frame frame_to(const Mac& mac) { return frame_of({mac.begin(), mac.end()}); }

// RoCE (UDP port 4791), to a QP number that must not influence the flow.
std::vector<std::uint8_t> packet_bytes(std::uint16_t source_port, std::uint8_t qp, std::uint8_t from = 1,
                                       std::uint8_t type_of_service = 0) {
  std::vector<std::uint8_t> bytes{kThere.begin(), kThere.end()};
  bytes.insert(bytes.end(), {2, 0, 0, 0, 0, from, 0x08, 0x00});
  bytes.insert(bytes.end(), {0x45, type_of_service, 0, 86, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, from, 1, 10, 0, 9, 1});
  bytes.insert(bytes.end(), {std::uint8_t(source_port >> 8), std::uint8_t(source_port), 0x12, 0xb7, 0, 66, 0, 0});
  bytes.insert(bytes.end(), {4, 0, 0xff, 0xff, 0, 0, 0, qp, 0, 0, 0, 0});
  return bytes;
}
template <class... Fields>
Frame packet(Fields... fields) {
  return frame_of(packet_bytes(fields...));
}

using Settings = std::vector<std::pair<std::string, std::string>>;
SwitchParams params_with(const Settings& settings) {
  SwitchParams params;
  const sim::ParamList list(params);
  for (const auto& [key, text] : settings) EXPECT_EQ(list.find(key)->assign(text), std::nullopt) << key;
  return params;
}

class SwitchTest : public ::testing::Test {
 protected:
  SwitchTest() { make(0); }
  // Builds a new switch.
  void make(std::uint32_t number, std::vector<std::uint16_t> flooded = {}, const SwitchParams& params = {}) {
    Stations stations;
    const auto add = [&](const Mac& mac, Stations::Place place) {
      std::uint8_t bytes[kMacBytes];
      std::ranges::copy(mac, bytes);
      stations.add(bytes, place);
    };
    add(kHere, {number, 2});
    add(kThere, {5, 7});
    add(kIsland, {6, 0});
    box_.reset();
    left_.clear();
    sc_core::sc_get_curr_simcontext()->reset();
    box_ = std::make_unique<Switch>("box", params,
                                    SwitchWiring{.number = number,
                                                 .lines = std::vector<LineTiming>(4),
                                                 .stations = std::make_shared<const Stations>(stations),
                                                 .way_to = {0, 0, 0, 0, 0, 1, 0},
                                                 .ways = {{}, {0, 1, 3}},
                                                 .flooded = std::move(flooded)});
    for (std::size_t port = 0; port < 4; ++port)
      box_->out(port).bind([this, port](Frame&& frame) { left_.push_back({port, now(), frame.id()}); });
  }
  void receive(std::size_t from, Frame&& frame) { box_->receive(from, std::move(frame), {}); }
  std::vector<std::size_t> ports() {
    sc_core::sc_start(200, sc_core::SC_US);
    std::vector<std::size_t> ports;
    for (const auto& left : left_) ports.push_back(left.port);
    std::ranges::sort(ports);
    return ports;
  }
  std::size_t way_of(Frame&& frame) {
    left_.clear();
    receive(2, std::move(frame));
    return ports().at(0);
  }

  struct Left {
    std::size_t port;
    Duration at;
    std::uint64_t frame;
    bool operator==(const Left&) const = default;
  };
  std::unique_ptr<Switch> box_;
  std::vector<Left> left_;
};

TEST_F(SwitchTest, AGroupsFrameLeavesByEveryPortOfTheTreeButItsOwn) {
  make(0, {0, 1, 3});
  receive(1, frame_to(kGroup));
  EXPECT_EQ(ports(), (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(left_[0].at, left_[1].at);
  EXPECT_EQ(box_->counters().frames, 1u);
  EXPECT_EQ(box_->counters().bytes, 100u);
  EXPECT_EQ(box_->counters().unknown, 0u);
}

TEST_F(SwitchTest, OneForAHostLeavesByItsPort) {
  make(0, {0, 1, 2, 3});
  receive(1, frame_to(kHere));
  receive(1, frame_to(kNobody));
  receive(1, frame_to(kIsland));
  EXPECT_EQ(ports(), (std::vector<std::size_t>{2}));
  EXPECT_EQ(box_->counters().unknown, 2u);
}

TEST_F(SwitchTest, ManyFlowsShareTheWaysAndEachKeepsItsOwn) {
  std::map<std::size_t, int> flows;
  for (std::uint16_t port = 0; port < 600; ++port) {
    const auto way = way_of(packet(0xc000 + port, 1));
    ++flows[way];
    if (port % 50 == 0) {
      for (const std::uint8_t qp : {2, 3, 4, 5}) EXPECT_EQ(way_of(packet(0xc000 + port, qp, 1, qp)), way) << port;
    }
  }
  EXPECT_EQ(flows.size(), 3u);
  for (const auto& [way, count] : flows) EXPECT_NEAR(count, 200, 45) << way;  // four standard deviations
}

TEST_F(SwitchTest, AFlowStaysInOrder) {
  for (std::uint64_t id = 1; id <= 200; ++id) {
    receive(2, frame_of(packet_bytes(static_cast<std::uint16_t>(0xc000 + id % 7), std::uint8_t(id)), 100, id));
  }
  EXPECT_EQ(ports().size(), 200u);
  std::map<std::uint64_t, std::uint64_t> last;
  for (const auto& left : left_) {
    EXPECT_GT(left.frame, last[left.frame % 7]);
    last[left.frame % 7] = left.frame;
  }
}

// Frames that one switch sent by one port are divided again by the next switch.
TEST_F(SwitchTest, TwoSwitchesChooseIndependently) {
  std::vector<std::uint16_t> first;
  for (std::uint16_t port = 0; port < 600; ++port)
    if (way_of(packet(port, 1)) == 1) first.push_back(port);
  make(3);
  std::map<std::size_t, std::size_t> flows;
  for (const auto port : first) ++flows[way_of(packet(port, 1))];
  EXPECT_EQ(flows.size(), 3u);
  for (const auto& [way, count] : flows) EXPECT_NEAR(double(count), double(first.size()) / 3, 30) << way;
}

TEST(FlowOf, TheFiveFieldsAndNoMore) {
  const auto flow = flow_of(packet(0xc000, 1));
  EXPECT_EQ(flow_of(packet(0xc000, 2, 1, 8)), flow);
  EXPECT_NE(flow_of(packet(0xc001, 1)), flow);
  EXPECT_NE(flow_of(packet(0xc000, 1, 2)), flow);
  const auto fragment = [](std::uint16_t port) {
    auto bytes = packet_bytes(port, 1);
    bytes[20] = 0x20;  // more fragments
    return flow_of(frame_of(bytes));
  };
  EXPECT_EQ(fragment(0xc000), fragment(0xc001));
}

TEST(FlowOf, Ipv6) {
  const auto frame = [](std::uint8_t address, std::uint8_t port) {
    std::vector<std::uint8_t> bytes(62);
    bytes[12] = 0x86;
    bytes[13] = 0xdd;
    bytes[20] = 17;
    bytes[37] = address;  // last byte of the source address
    bytes[55] = port;
    return flow_of(frame_of(bytes));
  };
  EXPECT_EQ(frame(1, 1), frame(1, 1));
  EXPECT_NE(frame(1, 1), frame(2, 1));
  EXPECT_NE(frame(1, 1), frame(1, 2));
}

// For frames that are no IP or truncated, the MAC addresses count.
TEST(FlowOf, OtherFrames) {
  const auto frame = [](std::uint8_t source, std::uint8_t rest, std::size_t size) {
    return flow_of(frame_of({2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, source, 0x89, 0x15, rest}, size));
  };
  EXPECT_EQ(frame(1, 7, 100), frame(1, 8, 100));
  EXPECT_NE(frame(1, 7, 100), frame(2, 7, 100));
  for (std::size_t size = 0; size < 60; ++size) {
    EXPECT_LT(choose_way(flow_of(frame_of(packet_bytes(1, 1), size)), 1, 3), 3u);
  }
}

// Frames with one possible way, and frames to a group, do not advance the round robin.
TEST_F(SwitchTest, SprayedFramesTakeTurns) {
  make(0, {0}, params_with({{"path", "spray"}, {"spray.order", "round_robin"}}));
  std::map<std::size_t, int> frames;
  for (int i = 0; i < 60; ++i) {
    way_of(frame_to(kHere));
    way_of(frame_to(kGroup));
    ++frames[way_of(packet(0xc000, 1))];
  }
  EXPECT_EQ(frames, (std::map<std::size_t, int>{{0, 20}, {1, 20}, {3, 20}}));
}

// Frames to a group leave by port 0 alone, and wait there.
TEST_F(SwitchTest, AdaptiveFramesAvoidAPortWhereFramesWait) {
  for (const std::string load : {"priority", "port"}) {
    make(0, {0}, params_with({{"path", "adaptive"}, {"adaptive.choices", "3"}, {"adaptive.load", load}}));
    auto group = frame_of({kGroup.begin(), kGroup.end()}, 9'000);
    for (int i = 0; i < 20; ++i) receive(1, Frame(group));
    for (int i = 0; i < 40; ++i) receive(2, packet(0xc000, 1));
    std::map<std::size_t, int> frames;
    for (const auto port : ports()) ++frames[port];
    EXPECT_EQ(frames[0], 20) << load;
    EXPECT_EQ(frames[1] + frames[3], 40) << load;
    EXPECT_NEAR(frames[1], 20, 3) << load;
  }
}

TEST_F(SwitchTest, FlowletsThatChangeTheirWayAreCounted) {
  make(0, {}, params_with({{"path", "flowlet"}, {"flowlet.gap", "250 us"}}));
  std::size_t changes = 0, last = way_of(packet(0xc000, 1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(way_of(packet(0xc000, 1)), last);  // 200 us later
    sc_core::sc_start(100, sc_core::SC_US);
    const auto way = way_of(packet(0xc000, 1));
    changes += way != last;
    last = way;
  }
  EXPECT_GT(changes, 20u);
  EXPECT_EQ(box_->counters().path_changes, changes);
}

// Two frames of 100 bytes to one port: the first leaves while the second waits.
TEST_F(SwitchTest, TellsHowLongAQueueIs) {
  SwitchParams params;
  params.histograms = true;
  make(0, {}, params);
  std::vector<std::pair<Duration, std::uint64_t>> told;
  box_->queue_changed.subscribe([&](const QueueChanged& queue) {
    EXPECT_EQ(queue.port, 2u);
    EXPECT_EQ(queue.priority, 0u);
    told.push_back({now(), queue.bytes});
  });
  receive(1, frame_to(kHere));
  receive(3, frame_to(kHere));
  EXPECT_EQ(ports().size(), 2u);
  const auto line = LineTiming{}.rate.time_for({100 + 24});
  ASSERT_EQ(left_[1].at - left_[0].at, line);
  using Told = std::vector<std::pair<Duration, std::uint64_t>>;
  EXPECT_EQ(told, (Told{{{}, 100}, {{}, 200}, {left_[0].at, 100}, {left_[1].at, 0}}));
  const auto histograms = box_->histograms();
  ASSERT_EQ(histograms.size(), 4u);
  const auto& lengths = histograms[2].lengths[0];
  EXPECT_EQ(lengths.time(), now());
  EXPECT_DOUBLE_EQ(lengths.mean() * static_cast<double>(now().ps),
                   200.0 * static_cast<double>(left_[0].at.ps) + 100.0 * static_cast<double>(line.ps));
  EXPECT_FALSE(histograms[1].lengths[0].was_filled());
  make(0);
  EXPECT_TRUE(box_->histograms().empty());
}

// A fabric divided over processes hands frames over at any time before they arrive.
class HandedOver : public SwitchTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(HandedOver, ItMattersWhenAndWhereAFrameArrivesNotWhenItWasHandedOver) {
  struct Arrival {
    std::size_t port;
    Duration at;
    std::uint64_t id;
  };
  std::mt19937 draws(7);
  const auto below = [&draws](std::uint32_t end) { return static_cast<std::uint32_t>(draws() % end); };
  std::vector<Arrival> arrivals;
  constexpr Duration kStep{50'000};
  for (std::size_t port = 0; port < 4; ++port)
    for (Duration at{1'000'000}; at < Duration{40'000'000}; at += kStep * std::int64_t{1 + below(4)})
      arrivals.push_back({port, at, arrivals.size() + 1});
  const auto run = [&](auto&& ahead) {
    auto params = params_with({{"path", GetParam()}, {"flowlet.gap", "100 ns"}});
    params.port_buffer = 2_KiB;
    params.pfc = {.priorities = 8, .xoff = 1_KiB, .xon = 512_B, .headroom = 512_B};
    make(0, {}, params);
    EventQueue<Arrival> handed([&] {
      Arrival next;
      while (handed.pop_due(next)) {
        const auto priority = static_cast<std::uint8_t>(next.id % 3 * 48 << 1);  // priority 0, 3 or 6
        auto bytes = packet_bytes(0xc000, 1, 1, priority);
        box_->receive(next.port, frame_of(bytes, 80 + next.id * 37 % 900, next.id), next.at - now());
      }
    });
    std::vector<Duration> last(4);
    for (const auto& arrival : arrivals) {
      auto& before = last[arrival.port];
      before = std::max(before, arrival.at - ahead());
      handed.push(before, Arrival(arrival));
    }
    sc_core::sc_start(200, sc_core::SC_US);
    return std::pair(left_, box_->counters());
  };
  const auto [left, counters] = run([] { return Duration{500'000}; });
  EXPECT_NE(counters.tx_discards, 0u);
  EXPECT_NE(counters.rx_discards, 0u);
  EXPECT_NE(counters.tx_pause, 0u);
  for (const auto most : {1u, 100'000u, 500'000u}) {
    const auto [others, again] = run([&] { return Duration{std::int64_t{1 + below(most)}}; });
    EXPECT_EQ(others.size(), left.size());
    EXPECT_TRUE(others == left) << most;
    EXPECT_EQ(again.most_waiting, counters.most_waiting);
    EXPECT_EQ(again.tx_discards, counters.tx_discards);
    EXPECT_EQ(again.tx_pause, counters.tx_pause);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, HandedOver, ::testing::Values("ecmp", "spray", "flowlet", "adaptive"));

TEST_F(SwitchTest, OneTooShortForAnAddressIsForNobody) {
  make(0, {0});
  box_->receive(1, Frame::of(Payload::copy_of(std::array{std::byte{1}, std::byte{2}})), {});
  EXPECT_EQ(ports(), (std::vector<std::size_t>{}));
  EXPECT_EQ(box_->counters().unknown, 1u);
}

}  // namespace
}  // namespace rnicsim::fabric::switch_test

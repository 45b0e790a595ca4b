// SPDX-License-Identifier: Apache-2.0
// ECN marking: frames that a switch marks, their number, and the other content of a marked frame.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/draw.h"
#include "model/fabric/ecn_marker.h"
#include "model/fabric/switch.h"
#include "model/nic/packets/packet.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::fabric::ecn_test {
namespace {

constexpr std::uint8_t kDscp = 26;
constexpr std::uint8_t kPriority = kDscp / 8;

std::vector<std::byte> bytes_of(const Frame& frame) {
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  return bytes;
}

// --- A marked frame.
class MarkedFrame : public testing::TestWithParam<bool> {
 protected:
  // A WRITE of 5 bytes, over IPv4 or IPv6.
  static Frame packet(std::uint8_t ecn) {
    auto packet = nic::Packet::make();
    packet->headers.bth.opcode = roce::Opcode::write_only;
    packet->headers.reth.emplace();
    auto& to = packet->addresses;
    to = {};
    if (GetParam()) to.source[10] = to.source[11] = to.destination[10] = to.destination[11] = 0xff;
    to.source[15] = 1;
    to.destination[15] = 2;
    to.traffic_class = static_cast<std::uint8_t>(kDscp << 2 | ecn);
    packet->put(Payload::copy_of(std::array<std::byte, 5>{}));
    packet->seal(7, false);
    return Frame(packet);
  }
  static Frame as_bytes(const Frame& frame) { return Frame::of(Payload::copy_of(bytes_of(frame)), {}, {}, frame.id()); }
  // The marked frame parses, its ICRC is right, and only the ECN bits differ from the original.
  static void expect_marked(const Frame& marked, const Frame& original) {
    const auto bytes = bytes_of(marked);
    const auto parsed = roce::parse_frame(bytes, bytes.size());
    ASSERT_EQ(parsed.error, roce::ParseError::none);
    EXPECT_EQ(parsed.addresses.traffic_class, kDscp << 2 | kCe);
    EXPECT_EQ(marked.traffic_class(), kDscp << 2 | kCe);
    EXPECT_EQ(marked.id(), original.id());
    const auto before = bytes_of(original);
    const auto unmarked = roce::parse_frame(before, before.size());
    EXPECT_EQ(parsed.headers, unmarked.headers);
    ASSERT_EQ(bytes.size(), before.size());
    EXPECT_TRUE(std::equal(bytes.end() - roce::kIcrcBytes, bytes.end(), before.end() - roce::kIcrcBytes));
  }
};

TEST_P(MarkedFrame, ThePacketOfANic) {
  const auto original = packet(kEct0);
  auto frame = packet(kEct0);
  ASSERT_TRUE(frame.is_markable());
  frame.mark();
  EXPECT_NE(frame.as<nic::Packet>(), nullptr);
  EXPECT_FALSE(frame.is_markable());
  expect_marked(frame, original);
}

TEST_P(MarkedFrame, OneWhoseBytesWereLookedAt) {
  const auto original = packet(kEct0);
  auto frame = packet(kEct0);
  frame.write();
  frame.mark();
  expect_marked(frame, original);
}

TEST_P(MarkedFrame, OtherHandlesKeepTheirs) {
  auto frame = packet(kEct0);
  const auto other = frame;
  frame.mark();
  EXPECT_EQ(other.traffic_class(), kDscp << 2 | kEct0);
  expect_marked(frame, other);
}

TEST_P(MarkedFrame, OneOfBytes) {
  const auto original = as_bytes(packet(kEct1));
  auto frame = original;
  frame.mark();
  EXPECT_EQ(original.traffic_class(), kDscp << 2 | kEct1);
  expect_marked(frame, original);
}

TEST_P(MarkedFrame, OnlyEctMayBeMarked) {
  EXPECT_FALSE(packet(kNotEct).is_markable());
  EXPECT_TRUE(packet(kEct0).is_markable());
  EXPECT_TRUE(packet(kEct1).is_markable());
  EXPECT_FALSE(packet(kCe).is_markable());
}

INSTANTIATE_TEST_SUITE_P(Versions, MarkedFrame, testing::Bool(),
                         [](const auto& version) { return std::string(version.param ? "IPv4" : "IPv6"); });

// --- Probability of a mark.
constexpr EcnParams kRed{.priorities = 1 << kPriority, .kmin = {40'000}, .kmax = {120'000}, .pmax = 0.5};

double chance_at(const EcnParams& params, double queue) {
  const auto kmin = static_cast<double>(params.kmin.bytes), kmax = static_cast<double>(params.kmax.bytes);
  if (queue < kmin) return 0;
  return queue >= kmax ? 1 : params.pmax * (queue - kmin) / (kmax - kmin);
}

TEST(EcnMarker, MarksByTheLengthOfTheQueue) {
  const EcnMarker marker(kRed);
  for (const std::uint64_t queue : {0, 39'999, 40'000, 41'000, 60'000, 80'000, 119'000, 119'999, 120'000, 500'000}) {
    SmallGenerator generator(1, queue);
    constexpr int kDraws = 20'000;
    int marks = 0;
    for (int i = 0; i < kDraws; ++i) marks += marker.draws_mark(0, queue, generator);
    const auto chance = chance_at(kRed, static_cast<double>(queue));
    EXPECT_NEAR(marks, kDraws * chance, 3 * std::sqrt(kDraws * chance * (1 - chance))) << queue;
  }
}

TEST(EcnMarker, AStepMarksFromItsLengthOn) {
  const EcnMarker marker({.priorities = 255, .kmin = {30'000}, .kmax = {30'000}, .pmax = 1});
  SmallGenerator generator(1, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(marker.draws_mark(0, 29'999, generator));
    EXPECT_TRUE(marker.draws_mark(0, 30'000, generator));
  }
}

TEST(EcnMarker, APriorityMayHaveThresholdsOfItsOwn) {
  const EcnMarker marker(
      {.priorities = 255, .kmin = {30'000}, .kmax = {30'000}, .by_priority = "3:50KB:50KB:1 5:0B:1B:0"});
  SmallGenerator generator(1, 1);
  EXPECT_TRUE(marker.draws_mark(0, 30'000, generator));
  EXPECT_FALSE(marker.draws_mark(3, 49'999, generator));
  EXPECT_TRUE(marker.draws_mark(3, 50'000, generator));
  EXPECT_TRUE(marker.draws_mark(5, 1, generator));
}

TEST(RedThresholds, RefuseWhatIsNoList) {
  for (const auto* text : {"3", "3:1KB:2KB", "8:1KB:2KB:0.1", "3:2KB:1KB:0.1", "3:1KB:2KB:1.5", "3:1KB:2KB:-1",
                           "3:1:2:0.1", "3:1KB:2KB:nan", "3:1KB:2KB:0 3:1KB:2KB:0", "3:1KB:2KB:0.1:5", "x:1KB:2KB:0.1"})
    EXPECT_EQ(parse_red_thresholds(text, {}), std::nullopt) << text;
}

// --- A burst through a switch.
constexpr std::uint32_t kBytes = 1000;

class EcnSwitch : public testing::Test {
 protected:
  struct Burst {
    std::uint32_t frames;
    std::uint32_t marked = 0;
    std::uint32_t lost = 0;
  };

  static std::unique_ptr<Switch> make(const EcnParams& ecn, std::uint64_t seed, std::uint32_t lossless) {
    sc_core::sc_get_curr_simcontext()->reset();
    Stations stations;
    stations.add({2, 0, 0, 0, 0, 1}, {0, 1});
    SwitchParams params;
    params.ecn = ecn;
    params.pfc.priorities = lossless;
    params.jitter = SwitchParams::kJitterWords[1];
    return std::make_unique<Switch>("box", params,
                                    SwitchWiring{.number = 0,
                                                 .lines = std::vector<LineTiming>(2),
                                                 .stations = std::make_shared<const Stations>(stations),
                                                 .way_to = {0},
                                                 .ways = {{}},
                                                 .flooded = {},
                                                 .seed = seed});
  }
  static Frame frame(std::uint8_t ecn, std::uint8_t dscp = kDscp) {
    std::array<std::byte, kBytes> bytes{};
    bytes[0] = std::byte{2};
    bytes[5] = std::byte{1};
    bytes[12] = std::byte{0x08};
    bytes[14] = std::byte{0x45};
    bytes[15] = static_cast<std::byte>(dscp << 2 | ecn);
    return Frame::of(Payload::copy_of(bytes));
  }
  // All frames arrive at the same time.
  static Burst send(const EcnParams& ecn, std::uint32_t frames, std::uint8_t code = kEct0, std::uint8_t dscp = kDscp,
                    std::uint64_t seed = 1, std::uint32_t lossless = 0) {
    auto box = make(ecn, seed, lossless);
    std::uint32_t left = 0, marked = 0;
    box->out(0).bind([](Frame&&) {});
    box->out(1).bind([&](Frame&& frame) {
      ++left;
      marked += (frame.traffic_class() & kEcnMask) == kCe;
    });
    for (std::uint32_t i = 0; i < frames; ++i) box->receive(0, frame(code, dscp), 1_ns);
    sc_core::sc_start(1, sc_core::SC_MS);
    EXPECT_EQ(box->counters().ecn_marked, marked);
    EXPECT_EQ(box->counters().tx_discards, frames - left);
    return {frames, marked, frames - left};
  }
};

// The burst is ten frames longer than kmax; each frame finds the frames behind it in the queue. The number of marks is
// the sum of the probabilities, within three standard deviations, over several seeds.
TEST_F(EcnSwitch, ABurstIsMarkedAsRedSays) {
  const auto frames = static_cast<std::uint32_t>(kRed.kmax.bytes / kBytes + 10);
  constexpr int kSeeds = 20;
  double wanted = 0, variance = 0;
  for (std::uint32_t behind = 0; behind < frames; ++behind) {
    const auto chance = chance_at(kRed, behind * kBytes);
    wanted += kSeeds * chance;
    variance += kSeeds * chance * (1 - chance);
  }
  double marked = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) marked += send(kRed, frames, kEct0, kDscp, seed).marked;
  EXPECT_NEAR(marked, wanted, 3 * std::sqrt(variance));
}

TEST_F(EcnSwitch, AtEnqueueEachFindsThoseBeforeIt) {
  auto step = kRed;
  step.kmin = step.kmax = {10 * kBytes};
  step.at = EcnParams::kAtWords[1];
  EXPECT_EQ(send(step, 25).marked, 15u);
  step.at = EcnParams::kAtWords[0];
  EXPECT_EQ(send(step, 25).marked, 15u);
}

TEST_F(EcnSwitch, TheSameSeedMarksTheSameNumber) {
  EXPECT_EQ(send(kRed, 130, kEct0, kDscp, 5).marked, send(kRed, 130, kEct0, kDscp, 5).marked);
}

TEST_F(EcnSwitch, NotEctAndOtherPrioritiesAreNotMarked) {
  EXPECT_EQ(send(kRed, 200, kNotEct).marked, 0u);
  EXPECT_EQ(send(kRed, 200, kEct0, 0).marked, 0u);
  EXPECT_GT(send(kRed, 200, kEct1).marked, 80u);
}

TEST_F(EcnSwitch, NotEctIsLostInsteadWhereThatIsWanted) {
  auto step = kRed;
  step.kmin = step.kmax = {10 * kBytes};
  EXPECT_EQ(send(step, 25, kNotEct).lost, 0u);
  step.drop_not_ect = true;
  EXPECT_EQ(send(step, 25, kNotEct).lost, 15u);
  EXPECT_EQ(send(step, 25, kEct0).lost, 0u);
  EXPECT_EQ(send(step, 25, kNotEct, kDscp, 1, 1 << kPriority).lost, 0u);  // a lossless priority loses nothing
}

}  // namespace
}  // namespace rnicsim::fabric::ecn_test

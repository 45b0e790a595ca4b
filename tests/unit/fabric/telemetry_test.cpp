// SPDX-License-Identifier: Apache-2.0
// In-band telemetry: bytes of a block, differences between two blocks, frames with a block, and records that a switch
// adds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/telemetry.h"
#include "model/fabric/fault_rules.h"
#include "model/fabric/switch.h"
#include "model/nic/packets/frame_transfer.h"
#include "model/nic/packets/packet.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::fabric::telemetry_test {
namespace {

using namespace rnicsim::literals;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Frame& frame) {
  Bytes bytes;
  frame.append_to(bytes);
  return bytes;
}
Bytes bytes_of(const Telemetry& block) {
  Bytes bytes(block.size());
  block.put(bytes);
  return bytes;
}
PortState port(Duration at, std::uint64_t sent, std::uint64_t queue, std::uint32_t id = 1, BitRate rate = 100_Gbps) {
  return {.rate = rate, .at = at, .sent = sent, .queue = queue, .id = id};
}
Telemetry block_of(std::initializer_list<PortState> ports) {
  Telemetry block;
  for (const auto& one : ports) block.add(one);
  return block;
}

// --- A block.
TEST(Telemetry, ARecordHasTheWidthsOfThePaper) {
  const HopRecord record(port(0x123456 * 1000_ps + 999_ps, 0x54321 * 128 + 127, 0xabcd * 80 + 79));
  EXPECT_EQ(record.bits(), 0x8'123456'54321'abcdu);
  EXPECT_EQ(record.rate(), 100_Gbps);
  EXPECT_EQ(record.time(), 0x123456u);
  EXPECT_EQ(record.sent(), 0x54321u);
  EXPECT_EQ(record.queue(), 0xabcdu);
}

TEST(Telemetry, WhatDoesNotFitIsCutOffAndAQueueIsTheMost) {
  const HopRecord record(port(17_ms, (1ull << 27) + 256, 10'000'000));
  EXPECT_EQ(record.time(), 17'000'000u - (1u << 24));
  EXPECT_EQ(record.sent(), 2u);
  EXPECT_EQ(record.queue(), 65'535u);
}

TEST(Telemetry, ARateIsTheNextLowerUsualOne) {
  const auto told = [](BitRate rate) { return HopRecord(port({}, 0, 0, 1, rate)).rate(); };
  for (const auto rate : {1_Gbps, 10_Gbps, 25_Gbps, 40_Gbps, 50_Gbps, 100_Gbps, 200_Gbps, 400_Gbps, 800_Gbps})
    EXPECT_EQ(told(rate), rate);
  EXPECT_EQ(told(BitRate{2'500'000'000}), BitRate{2'500'000'000});
  EXPECT_EQ(told(24_Gbps), 10_Gbps);
  EXPECT_EQ(told(99_Gbps), 50_Gbps);
  EXPECT_EQ(told(9000_Gbps), 6400_Gbps);
  EXPECT_EQ(told(BitRate{999'999'999}), BitRate{});
  EXPECT_EQ(HopRecord(~0ull).rate(), BitRate{});
}

TEST(Telemetry, ABlockOnTheLine) {
  auto block = block_of({port(1_us, 128, 80), port(2_us, 256, 160, 2)});
  const auto bytes = bytes_of(block);
  ASSERT_EQ(bytes.size(), 42u);
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  EXPECT_EQ(byte(0) << 8 | byte(1), 0x2000u | block.path());
  EXPECT_EQ(byte(2) >> 4, 8u);  // 100 Gb/s
  EXPECT_EQ(byte(9), 1u);       // 80 bytes in the queue
  EXPECT_EQ(byte(17), 2u);
  EXPECT_TRUE(std::all_of(bytes.begin() + 18, bytes.end(), [](std::byte one) { return one == std::byte{0}; }));
  EXPECT_EQ(Telemetry::of(bytes), block);
  block.give_back();
  EXPECT_NE(bytes_of(block), bytes);
  EXPECT_EQ(Telemetry::of(bytes_of(block)), block);
  EXPECT_TRUE(Telemetry::of(bytes_of(block))->goes_back());
}

TEST(Telemetry, WhatIsNoBlock) {
  const auto bytes = bytes_of(block_of({port(1_us, 128, 80)}));
  EXPECT_FALSE(Telemetry::of(std::span(bytes).first(41)));
  auto many = bytes;
  many[0] = std::byte{0x60};  // six records
  EXPECT_FALSE(Telemetry::of(many));
  auto behind = bytes;
  behind[10] = std::byte{1};  // in a record that is not counted
  EXPECT_FALSE(Telemetry::of(behind));
  EXPECT_TRUE(Telemetry::of(Bytes(42)));
}

TEST(Telemetry, AFullBlockOrOneThatGoesBackTakesNoMore) {
  Telemetry block;
  for (std::uint32_t i = 0; i < 7; ++i) block.add(port(1_us, i * 128, 0, i));
  ASSERT_EQ(block.hops().size(), 5u);
  EXPECT_EQ(block.hops()[4].sent(), 4u);
  auto back = block_of({port(1_us, 0, 0)});
  back.give_back();
  const auto before = back;
  back.add(port(2_us, 0, 0, 3));
  EXPECT_EQ(back, before);
}

// --- The delay inside a receiver.
TEST(Telemetry, ADelayOnTheLine) {
  auto block = Telemetry::delay_request();
  EXPECT_TRUE(block.asks_for_delay());
  EXPECT_EQ(block.delay(), std::nullopt);
  auto bytes = bytes_of(block);
  EXPECT_EQ(bytes, (Bytes{std::byte{0xd3}, std::byte{0x1a}, {}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(Telemetry::of(bytes), block);
  block.give_back(0x1234567 * 1_ns + 999_ps);
  bytes = bytes_of(block);
  EXPECT_EQ(bytes, (Bytes{std::byte{0xd3},
                          std::byte{0x1a},
                          std::byte{0x80},
                          {},
                          std::byte{0x01},
                          std::byte{0x23},
                          std::byte{0x45},
                          std::byte{0x67}}));
  EXPECT_EQ(Telemetry::of(bytes), block);
  EXPECT_EQ(block.delay(), 0x1234567 * 1_ns);
  EXPECT_FALSE(block.asks_for_delay());
  block.give_back(5_s);
  EXPECT_EQ(block.delay(), 0xffffffff * 1_ns);
}

TEST(Telemetry, WhatIsNoDelay) {
  auto bytes = bytes_of(Telemetry::delay_request());
  // In a request: a changed mark, a changed reserved bit, or a delay.
  for (const std::size_t at : {0u, 1u, 2u, 3u, 7u}) {
    auto other = bytes;
    other[at] ^= std::byte{1};
    EXPECT_FALSE(Telemetry::of(other)) << at;
  }
}

TEST(Telemetry, ADelayTakesNoRecords) {
  auto block = Telemetry::delay_request();
  EXPECT_FALSE(block.takes_hops());
  block.add(port(1_us, 0, 0));
  EXPECT_EQ(block, Telemetry::delay_request());
}

// --- Differences between two blocks.
class Reader : public testing::Test {
 protected:
  std::span<const HopChange> read(const Telemetry& block, Duration after = 10_us) {
    return reader_.read(block, now_ += after);
  }

 private:
  TelemetryReader reader_;
  Duration now_{};
};

TEST_F(Reader, TellsWhatHappenedAtEachPort) {
  EXPECT_TRUE(read(block_of({port(1_us, 0, 800), port(2_us, 12'800, 0, 2, 400_Gbps)})).empty());
  const auto hops = read(block_of({port(11_us, 128'000, 1600), port(13_us, 64'000, 80, 2, 400_Gbps)}));
  ASSERT_EQ(hops.size(), 2u);
  EXPECT_EQ(hops[0].rate, 100_Gbps);
  EXPECT_EQ(hops[0].over, 10_us);
  EXPECT_EQ(hops[0].sent, 128'000u);
  EXPECT_EQ(hops[0].queue_before, 800u);
  EXPECT_EQ(hops[0].queue, 1600u);
  EXPECT_EQ(hops[1].rate, 400_Gbps);
  EXPECT_EQ(hops[1].over, 11_us);
  EXPECT_EQ(hops[1].sent, 51'200u);
}

TEST_F(Reader, TimesAndCountsWrapAround) {
  const auto wrap = Duration{1 << 24} * 1000;
  read(block_of({port(wrap - 4_us, (1ull << 27) - 1280, 0)}));
  const auto hops = read(block_of({port(wrap + 6_us, (1ull << 27) + 2560, 0)}));
  ASSERT_EQ(hops.size(), 1u);
  EXPECT_EQ(hops[0].over, 10_us);
  EXPECT_EQ(hops[0].sent, 3840u);
}

// The counter wraps after 134 MB: 10.7 ms at 100 Gb/s, 5.4 ms at 200 Gb/s.
TEST_F(Reader, ACountThatMayHaveWrappedSaysNothing) {
  read(block_of({port(0_us, 0, 0), port(0_us, 0, 0, 2, 200_Gbps)}));
  const auto hops = read(block_of({port(6_ms, 1 << 20, 0), port(6_ms, 1 << 20, 0, 2, 200_Gbps)}), 6_ms);
  ASSERT_EQ(hops.size(), 2u);
  EXPECT_EQ(hops[0].rate, 100_Gbps);
  EXPECT_EQ(hops[1].rate, BitRate{});
}

TEST_F(Reader, BeginsAnewBehindALongTime) {
  read(block_of({port(0_us, 0, 0)}));
  EXPECT_TRUE(read(block_of({port(9_ms, 1280, 0)}), 9_ms).empty());
  EXPECT_EQ(read(block_of({port(9_ms + 1_us, 2560, 0)})).size(), 1u);
}

TEST_F(Reader, BeginsAnewOnAnotherPath) {
  read(block_of({port(1_us, 0, 0, 1), port(2_us, 0, 0, 2)}));
  EXPECT_TRUE(read(block_of({port(3_us, 0, 0, 1), port(4_us, 0, 0, 3)})).empty());
  EXPECT_TRUE(read(block_of({port(5_us, 0, 0, 1)})).empty());
  EXPECT_EQ(read(block_of({port(6_us, 0, 0, 1)})).size(), 1u);
}

TEST_F(Reader, PassesOverOneThatIsOlder) {
  read(block_of({port(20_us, 12'800, 0)}));
  EXPECT_TRUE(read(block_of({port(10_us, 0, 0)})).empty());
  const auto hops = read(block_of({port(30_us, 25'600, 0)}));
  ASSERT_EQ(hops.size(), 1u);
  EXPECT_EQ(hops[0].over, 10_us);
  EXPECT_EQ(hops[0].sent, 12'800u);
}

TEST_F(Reader, WithoutPortsThereIsNothing) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read({}).empty());
}

// --- A frame with a block.
constexpr std::uint8_t kDscp = 26;

nic::PacketRef packet(bool ipv4, std::uint32_t payload = 5, const std::optional<Telemetry>& block = Telemetry()) {
  auto packet = nic::Packet::make();
  packet->headers.bth.opcode = roce::Opcode::write_only;
  packet->headers.reth.emplace();
  auto& to = packet->addresses;
  to = {};
  if (ipv4) to.source[10] = to.source[11] = to.destination[10] = to.destination[11] = 0xff;
  to.source[15] = 1;
  to.destination[15] = 2;
  to.destination_mac = {2, 0, 0, 0, 0, 1};
  to.traffic_class = kDscp << 2 | kEct0;
  packet->put(Payload::copy_of(Bytes(payload, std::byte{0x5a})));
  if (block) packet->carry(*block);
  packet->seal(7, false);
  return packet;
}
Frame in_one_piece(const Frame& frame) { return Frame::of(Payload::copy_of(bytes_of(frame)), {}, {}, frame.id()); }

class TelemetryFrame : public testing::TestWithParam<bool> {
 protected:
  static Frame with(const Telemetry& block) { return Frame(packet(GetParam(), 5, block)); }
};

TEST_P(TelemetryFrame, IsLongerByTheBlock) {
  const auto block = block_of({port(1_us, 1280, 80)});
  const Frame plain(packet(GetParam(), 5, std::nullopt));
  const auto frame = with(block);
  EXPECT_EQ(plain.telemetry(), nullptr);
  EXPECT_EQ(frame.size(), plain.size() + 42);
  const auto bytes = bytes_of(frame);
  auto wanted = bytes_of(plain);
  const auto behind = bytes_of(block);
  wanted.insert(wanted.end(), behind.begin(), behind.end());
  EXPECT_EQ(bytes, wanted);
  const auto parsed = roce::parse_frame(bytes, bytes.size());
  EXPECT_EQ(parsed.error, roce::ParseError::none);
  EXPECT_EQ(parsed.payload_bytes, 5u);
}

TEST_P(TelemetryFrame, ThatCameAsBytesHasItAgain) {
  const auto block = block_of({port(1_us, 1280, 80)});
  const auto frame = with(block);
  const auto again = in_one_piece(frame);
  EXPECT_EQ(again.as<nic::Packet>(), nullptr);
  ASSERT_NE(again.telemetry(), nullptr);
  EXPECT_EQ(*again.telemetry(), block);
  EXPECT_EQ(again.size(), frame.size());
  EXPECT_EQ(bytes_of(again), bytes_of(frame));
}

// Trailers that are no block: a byte missing, a byte added, a UDP port other than RoCE's, and invalid bytes.
TEST_P(TelemetryFrame, AnotherTrailerIsNone) {
  const auto bytes = bytes_of(with({}));
  const auto none = [](Bytes changed) {
    const auto frame = Frame::of(Payload::copy_of(changed));
    return frame.telemetry() == nullptr && bytes_of(frame) == changed;
  };
  EXPECT_FALSE(none(bytes));
  EXPECT_TRUE(none({bytes.begin(), bytes.end() - 1}));
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_TRUE(none(longer));
  auto other = bytes;
  other[roce::kEthernetBytes + (GetParam() ? roce::kIpv4Bytes : roce::kIpv6Bytes) + 3] ^= std::byte{1};
  EXPECT_TRUE(none(other));
  auto damaged = bytes;
  damaged.back() = std::byte{1};
  EXPECT_TRUE(none(damaged));
  EXPECT_TRUE(none(Bytes(42)));
  EXPECT_TRUE(none({}));
}

TEST_P(TelemetryFrame, OtherHandlesKeepTheirs) {
  for (const bool as_bytes : {false, true}) {
    auto frame = as_bytes ? in_one_piece(with({})) : with({});
    const auto other = frame;
    const auto before = bytes_of(other);
    frame.add_hop(port(1_us, 0, 0));
    EXPECT_EQ(frame.telemetry()->hops().size(), 1u);
    EXPECT_TRUE(other.telemetry()->hops().empty());
    EXPECT_EQ(bytes_of(other), before);
    EXPECT_EQ(frame.id(), other.id());
    const auto bytes = bytes_of(frame);
    ASSERT_EQ(bytes.size(), before.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 42, before.begin()));
    frame.add_hop(port(2_us, 0, 0, 2));  // no other handle refers to this frame
    EXPECT_EQ(frame.telemetry()->hops().size(), 2u);
  }
}

TEST_P(TelemetryFrame, AMarkLeavesItAlone) {
  const auto block = block_of({port(1_us, 1280, 80)});
  for (const bool as_bytes : {false, true})
    for (const bool shared : {false, true}) {
      auto frame = as_bytes ? in_one_piece(with(block)) : with(block);
      const auto other = shared ? frame : Frame();
      frame.mark();
      EXPECT_EQ(frame.traffic_class() & kEcnMask, kCe);
      ASSERT_NE(frame.telemetry(), nullptr);
      EXPECT_EQ(*frame.telemetry(), block);
      EXPECT_EQ(bytes_of(frame).size(), frame.size());
      EXPECT_EQ(roce::parse_frame(bytes_of(frame), frame.size()).addresses.traffic_class & kEcnMask, kCe);
    }
}

TEST_P(TelemetryFrame, ComesToAnotherProcess) {
  for (const bool as_bytes : {false, true}) {
    const auto sent =
        as_bytes ? in_one_piece(with(block_of({port(1_us, 1280, 80)}))) : with(block_of({port(1_us, 1280, 80)}));
    Bytes message;
    ByteWriter out(message);
    nic::put_frame(out, sent);
    ByteReader in(message);
    const auto arrived = nic::take_frame(in);
    EXPECT_TRUE(in.at_end());
    ASSERT_NE(arrived.telemetry(), nullptr);
    EXPECT_EQ(*arrived.telemetry(), *sent.telemetry());
    EXPECT_EQ(arrived.size(), sent.size());
    EXPECT_EQ(bytes_of(arrived), bytes_of(sent));
  }
}

// A rule that corrupts frames flips bits that the receiver notices, and no bits of the block.
TEST_P(TelemetryFrame, DamageIsDoneToThePacket) {
  const auto frame = with(block_of({port(1_us, 1280, 80)}));
  FaultRule rule;
  rule.action = FaultAction::corrupt;
  rule.probability = 1;
  FaultRules rules({rule}, 1, 0, [](const Frame&) { return std::optional<FrameFacts>(); });
  for (int i = 0; i < 2000; ++i) {
    const auto fault = rules.decide(frame);
    ASSERT_TRUE(fault);
    EXPECT_LT(fault->bit, (frame.size() - 42) * 8);
  }
  auto damaged = frame;
  flip_bit(damaged, 0);
  EXPECT_EQ(damaged.size(), frame.size());
  ASSERT_NE(damaged.telemetry(), nullptr);
  EXPECT_EQ(*damaged.telemetry(), *frame.telemetry());
}

TEST_P(TelemetryFrame, TheNextPacketInItsMemoryHasNone) {
  with({});
  const Frame next(packet(GetParam(), 5, std::nullopt));
  EXPECT_EQ(next.telemetry(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Versions, TelemetryFrame, testing::Bool(),
                         [](const auto& version) { return std::string(version.param ? "IPv4" : "IPv6"); });

// --- Records of a switch.
class TelemetrySwitch : public testing::Test {
 protected:
  static constexpr std::uint32_t kPayload = 1000;

  TelemetrySwitch() {
    sc_core::sc_get_curr_simcontext()->reset();
    Stations stations;
    stations.add({2, 0, 0, 0, 0, 1}, {0, 1});
    SwitchParams params;
    params.jitter = SwitchParams::kJitterWords[1];
    box_ = std::make_unique<Switch>("box", params,
                                    SwitchWiring{.number = 0,
                                                 .lines = std::vector<LineTiming>(2),
                                                 .stations = std::make_shared<const Stations>(stations),
                                                 .way_to = {0},
                                                 .ways = {{}},
                                                 .flooded = {},
                                                 .seed = 1});
    box_->out(0).bind([](Frame&&) {});
    box_->out(1).bind([this](Frame&& frame) { left_.emplace_back(now(), std::move(frame)); });
  }
  void send(const std::optional<Telemetry>& block) { box_->receive(0, Frame(packet(true, kPayload, block)), 1_ns); }

  std::unique_ptr<Switch> box_;
  std::vector<std::pair<Duration, Frame>> left_;
};

// All frames arrive at the same time: each leaves the others in the queue. A frame that arrives while another frame is
// leaving does not count.
TEST_F(TelemetrySwitch, ARecordOfThePortAsTheFirstBitLeaves) {
  for (int i = 0; i < 10; ++i) send(Telemetry());
  box_->receive(0, Frame(packet(true, kPayload, Telemetry())), 350_ns);  // after the last of the ten frames
  sc_core::sc_start(1, sc_core::SC_MS);
  ASSERT_EQ(left_.size(), 11u);
  const auto took = LineTiming{}.time_for(left_.front().second);
  const std::uint64_t size = left_.front().second.size();
  const auto on_the_line = size + LineTiming{}.overhead.bytes;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    const auto& [at, frame] = left_[i];
    ASSERT_EQ(frame.telemetry()->hops().size(), 1u);
    const auto& hop = frame.telemetry()->hops().front();
    EXPECT_EQ(hop.rate(), 100_Gbps);
    const auto began = at - took;
    EXPECT_EQ(hop.time(), static_cast<std::uint32_t>(began.ps / 1000));
    EXPECT_EQ(hop.sent(), i * on_the_line / 128);
    const auto others = (began < 351_ns ? 9 : 10) - i;
    EXPECT_EQ(hop.queue(), others * size / 80) << i;
    EXPECT_FALSE(frame.telemetry()->goes_back());
  }
}

TEST_F(TelemetrySwitch, FramesWithoutABlockAreCounted) {
  send(std::nullopt);
  send(Telemetry());
  sc_core::sc_start(1, sc_core::SC_MS);
  ASSERT_EQ(left_.size(), 2u);
  EXPECT_EQ(left_[0].second.telemetry(), nullptr);
  const std::uint64_t before = left_[0].second.size() + LineTiming{}.overhead.bytes;
  EXPECT_EQ(left_[1].second.telemetry()->hops().front().sent(), before / 128);
}

TEST_F(TelemetrySwitch, ABlockThatGoesBackStaysAsItIs) {
  auto back = block_of({port(1_us, 1280, 80)});
  back.give_back();
  send(back);
  Telemetry full;
  for (std::uint32_t i = 0; i < 5; ++i) full.add(port(1_us, 0, 0, i));
  send(full);
  sc_core::sc_start(1, sc_core::SC_MS);
  ASSERT_EQ(left_.size(), 2u);
  EXPECT_EQ(*left_[0].second.telemetry(), back);
  EXPECT_EQ(*left_[1].second.telemetry(), full);
}

}  // namespace
}  // namespace rnicsim::fabric::telemetry_test

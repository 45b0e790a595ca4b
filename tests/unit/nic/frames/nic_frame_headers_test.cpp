// SPDX-License-Identifier: Apache-2.0
// Headers that the reader finds in a frame, and checksums, for any bytes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <set>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/frame_headers.h"
#include "tests/unit/nic/frames/raw_frames.h"

namespace rnicsim::nic::frame_headers_test {
namespace {

using namespace test;
using enum FlowHeader;

constexpr Ipv6Address kNear{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr Ipv6Address kFar{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
constexpr FlowHeader kAll[] = {
    FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::ipv6, esp, FlowHeader::tcp, FlowHeader::udp, vxlan, gre, mpls};

std::set<FlowHeader> present(const FrameBytes& frame, bool inner = false) {
  const FrameHeaders headers(frame);
  std::set<FlowHeader> found;
  for (const auto header : kAll)
    if (headers.find(header, inner) != nullptr) found.insert(header);
  return found;
}

// The first bytes of a header's fields.
FrameBytes fields(const FrameBytes& frame, FlowHeader header, std::size_t count, bool inner = false) {
  const FrameHeaders headers(frame);
  const auto* found = headers.find(header, inner);
  if (found == nullptr) return {};
  return {found->begin(), found->begin() + static_cast<std::ptrdiff_t>(count)};
}

using Set = std::set<FlowHeader>;
const auto kUdpFrame = test::ethernet(0x0800, test::ipv4(17, 0x0a000001, 0x0a000002, test::udp(77, 88)));

TEST(FrameHeaders, Ipv4AndUdp) {
  EXPECT_EQ(present(kUdpFrame), (Set{FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::udp}));
  EXPECT_EQ(fields(kUdpFrame, FlowHeader::ethernet, 16), bytes({2, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 8, 0, 0, 0}));
  EXPECT_EQ(fields(kUdpFrame, FlowHeader::ipv4, 12), bytes({10, 0, 0, 1, 10, 0, 0, 2, 17, 0x1c, 63, 0}));
  EXPECT_EQ(fields(kUdpFrame, FlowHeader::udp, 4), word(88) + word(77));
}

TEST(FrameHeaders, TagsAreBeforeTheType) {
  const auto packet = test::ipv4(6, 1, 2, test::tcp(3, 4));
  const auto tagged = test::ethernet(0x88a8, vlan(0x2123, 0x8100, vlan(0x0456, 0x0800, packet)));
  EXPECT_EQ(present(tagged), (Set{FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::tcp}));
  EXPECT_EQ(fields(tagged, FlowHeader::ethernet, 16),
            bytes({2, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 8, 0, 0x21, 0x23}));
  EXPECT_EQ(fields(tagged, FlowHeader::tcp, 4), word(4) + word(3));
  auto endless = word(1);
  for (int i = 0; i < 5; ++i) endless = word(1) + word(0x8100) + endless;
  EXPECT_EQ(present(test::ethernet(0x8100, endless)), Set{FlowHeader::ethernet});
}

TEST(FrameHeaders, ALaterFragmentHasNoPorts) {
  const auto frame = [](unsigned fragment) {
    return test::ethernet(0x0800, test::ipv4(17, 1, 2, test::udp(3, 4), fragment));
  };
  EXPECT_EQ(present(frame(0x2000)), (Set{FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::udp}));
  EXPECT_EQ(present(frame(0x0001)), (Set{FlowHeader::ethernet, FlowHeader::ipv4}));
  EXPECT_EQ(fields(frame(0x2000), FlowHeader::ipv4, 12).back(), std::byte{1});
  EXPECT_EQ(fields(frame(0x4000), FlowHeader::ipv4, 12).back(), std::byte{2});
}

TEST(FrameHeaders, Ipv6BehindItsExtensions) {
  const auto destination_options = bytes({44, 1}) + FrameBytes(14);
  const auto fragment = [](unsigned offset) { return bytes({6, 0}) + word(offset) + FrameBytes(4); };
  const auto frame = [&](unsigned offset) {
    return test::ethernet(0x86dd,
                          test::ipv6(60, kNear, kFar, destination_options + fragment(offset) + test::tcp(3, 4)));
  };
  EXPECT_EQ(present(frame(1)), (Set{FlowHeader::ethernet, FlowHeader::ipv6, FlowHeader::tcp}));
  EXPECT_EQ(present(frame(8)), (Set{FlowHeader::ethernet, FlowHeader::ipv6}));
  const auto found = fields(frame(1), FlowHeader::ipv6, 39);
  EXPECT_EQ(found[15], std::byte{1});
  EXPECT_EQ(found[31], std::byte{2});
  EXPECT_EQ(FrameBytes(found.begin() + 32, found.end()), bytes({0, 2, 0x34, 0x56, 6, 0x1c, 62}));
}

TEST(FrameHeaders, Tunnels) {
  const auto inner = test::ethernet(0x0800, test::ipv4(6, 7, 8, test::tcp(9, 10)), 0x22);
  const Set kInner{FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::tcp};
  const auto over_vxlan = test::ethernet(
      0x0800, test::ipv4(17, 1, 2, test::udp(3, 4789, bytes({8, 0, 0, 0, 0x12, 0x34, 0x56, 0}) + inner)));
  EXPECT_EQ(present(over_vxlan), (Set{FlowHeader::ethernet, FlowHeader::ipv4, FlowHeader::udp, vxlan}));
  EXPECT_EQ(present(over_vxlan, true), kInner);
  EXPECT_EQ(fields(over_vxlan, vxlan, 4), word32(0x123456));
  EXPECT_EQ(fields(over_vxlan, FlowHeader::ethernet, 1, true), bytes({0x22}));
  const auto over_gre = test::ethernet(
      0x0800, test::ipv4(47, 1, 2, word(0xb000) + word(0x6558) + word32(0) + word32(77) + word32(1) + inner));
  EXPECT_EQ(present(over_gre), (Set{FlowHeader::ethernet, FlowHeader::ipv4, gre}));
  EXPECT_EQ(present(over_gre, true), kInner);
  EXPECT_EQ(fields(over_gre, gre, 8), word(0xb000) + word(0x6558) + word32(77));
  const auto in_ip = test::ethernet(0x86dd, test::ipv6(4, kNear, kFar, test::ipv4(17, 7, 8, test::udp(9, 10))));
  EXPECT_EQ(present(in_ip), (Set{FlowHeader::ethernet, FlowHeader::ipv6}));
  EXPECT_EQ(present(in_ip, true), (Set{FlowHeader::ipv4, FlowHeader::udp}));
}

TEST(FrameHeaders, LabelsAndSecurity) {
  const auto packet = test::ipv4(50, 1, 2, word32(0xabcdef01) + word32(3));
  const auto frame = test::ethernet(0x8847, word32(0x12345040) + word32(0x54321140) + packet);
  EXPECT_EQ(present(frame), (Set{FlowHeader::ethernet, FlowHeader::ipv4, esp, mpls}));
  EXPECT_EQ(fields(frame, mpls, 4), word32(0x12345040));
  EXPECT_EQ(fields(frame, esp, 8), word32(0xabcdef01) + word32(3));
}

// Truncated headers are absent; earlier headers are found unchanged.
TEST(FrameHeaders, EveryTruncation) {
  const auto inner = test::ethernet(0x86dd, test::ipv6(17, kNear, kFar, test::udp(9, 10)));
  const FrameBytes frames[] = {
      kUdpFrame,
      test::ethernet(0x0800, test::ipv4(17, 1, 2, test::udp(3, 4789, FrameBytes(8) + inner))),
      test::ethernet(0x8847, word32(0x140) + test::ipv4(6, 1, 2, test::tcp(3, 4))),
      test::ethernet(0x86dd,
                     test::ipv6(47, kNear, kFar,
                                word(0x2000) + word(0x86dd) + word32(7) + test::ipv6(6, kNear, kFar, test::tcp(3, 4)))),
  };
  for (const auto& whole : frames) {
    std::size_t most = 0;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const FrameBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const auto found = present(cut).size() + present(cut, true).size();
      EXPECT_GE(found, most);
      most = found;
      checksums_right(cut);
    }
    EXPECT_GE(most, 3u);
  }
}

RC_GTEST_PROP(FrameHeaders, AnyBytes, (const std::vector<std::uint8_t>& noise)) {
  FrameBytes frame = kUdpFrame;
  for (std::size_t i = 0; i < noise.size() && i < frame.size(); ++i)
    if (noise[i] % 3 == 0) frame[i] = std::byte(noise[i]);
  present(frame);
  checksums_right(frame);
  fill_checksums(frame);
}

TEST(FrameChecksums, FilledInTheyAreRight) {
  FrameBytes frames[] = {
      kUdpFrame,
      test::ethernet(0x0800, test::ipv4(6, 1, 2, test::tcp(3, 4) + bytes({1, 2, 3}))),
      test::ethernet(0x8100, vlan(5, 0x86dd, test::ipv6(17, kNear, kFar, test::udp(5, 6, bytes({9}))))),
      test::ethernet(0x86dd, test::ipv6(60, kNear, kFar, bytes({6, 0}) + FrameBytes(6) + test::tcp(3, 4))),
      test::ethernet(0x0800, test::ipv4(50, 1, 2, FrameBytes(9))),
  };
  for (auto& frame : frames) {
    frame.resize(frame.size() + 7);  // padding is not covered
    fill_checksums(frame);
    EXPECT_TRUE(checksums_right(frame));
    const auto covered = frame.size() - 7;
    for (const std::size_t at : {std::size_t{32}, covered - 1}) {
      auto wrong = frame;
      wrong[at] ^= std::byte{0x10};
      const bool only_header = frame[23] == std::byte{50};
      EXPECT_EQ(checksums_right(wrong), only_header && at == covered - 1) << at;
    }
    frame.back() ^= std::byte{1};
    EXPECT_TRUE(checksums_right(frame));
  }
}

// 10.0.0.1:77 to 10.0.0.2:88, UDP, "abcd"; sums calculated by hand.
TEST(FrameChecksums, KnownValues) {
  auto frame = test::ethernet(0x0800, bytes({0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}) +
                                          test::udp(77, 88, bytes({'a', 'b', 'c', 'd'})));
  fill_checksums(frame);
  EXPECT_EQ(FrameBytes(frame.begin() + 24, frame.begin() + 26), word(0x66cb));
  EXPECT_EQ(FrameBytes(frame.begin() + 40, frame.begin() + 42), word(0x2668));
}

TEST(FrameChecksums, UdpMayDoWithoutOverIpv4) {
  auto frame = kUdpFrame;
  fill_checksums(frame);
  frame[40] = frame[41] = std::byte{};
  EXPECT_TRUE(checksums_right(frame));
  auto over_ipv6 = test::ethernet(0x86dd, test::ipv6(17, kNear, kFar, test::udp(5, 6)));
  EXPECT_FALSE(checksums_right(over_ipv6));
  EXPECT_FALSE(checksums_right(test::ethernet(0x0806, FrameBytes(46))));
}

}  // namespace
}  // namespace rnicsim::nic::frame_headers_test

// SPDX-License-Identifier: Apache-2.0
// The header reader and the checksums against a second reader, on random frames: complete, truncated, damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/frame_headers.h"
#include "tests/unit/nic/frames/raw_frames.h"

namespace rnicsim::nic {
namespace {

using namespace test;

using Headers = std::map<std::pair<FlowHeader, bool>, FlowFields>;  // of the outer ones and, true, of the inner ones

// Ranges that checksums cover, as offsets in the frame.
struct IpPacket {
  std::size_t at;
  std::size_t addresses;
  std::size_t addresses_end;
  std::size_t transport;
  std::size_t end;
  unsigned protocol;
  bool fragment;

  bool is_ipv4() const { return addresses_end - addresses == 8; }
  bool is_tcp() const { return protocol == 6; }
  bool is_udp() const { return protocol == 17; }
  bool is_whole() const { return end - transport >= (is_tcp() ? 20u : is_udp() ? 8u : 0u); }
  std::size_t checksum() const { return transport + (is_tcp() ? 16 : 6); }
};

// The second reader: works with offsets, each layer from `at` to `end`. Checksums by arithmetic modulo 2^16 - 1: a
// ones' complement sum is a remainder.
class Reference {
 public:
  explicit Reference(const FrameBytes& frame) : frame_(frame) { ethernet(0, frame.size(), false); }

  const Headers& headers() const { return headers_; }
  bool checksums_right() const {
    if (!ip_ || ip_->fragment || !ip_->is_whole()) return false;
    if (ip_->is_ipv4() && sum(ip_->at, ip_->transport) % kOnes != 0) return false;
    if (!ip_->is_tcp() && !ip_->is_udp()) return true;
    if (ip_->is_udp() && word(ip_->checksum()) == 0) return ip_->is_ipv4();
    return transport_sum() % kOnes == 0;
  }
  FrameBytes with_checksums() const {
    auto frame = frame_;
    if (!ip_) return frame;
    const auto put = [&frame](std::size_t at, unsigned value) { std::ranges::copy(test::word(value), &frame.at(at)); };
    const auto checksum = [this](std::uint64_t sum, std::size_t at) {
      return static_cast<unsigned>((kOnes - (sum - word(at)) % kOnes) % kOnes);
    };
    if (ip_->is_ipv4()) put(ip_->at + 10, checksum(sum(ip_->at, ip_->transport), ip_->at + 10));
    if (ip_->fragment || !ip_->is_whole() || (!ip_->is_tcp() && !ip_->is_udp())) return frame;
    const auto value = checksum(transport_sum(), ip_->checksum());
    put(ip_->checksum(), value == 0 && ip_->is_udp() ? kOnes : value);
    return frame;
  }

 private:
  static constexpr unsigned kOnes = 0xffff;

  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(frame_.at(at)); }
  unsigned word(std::size_t at) const { return byte(at) << 8 | byte(at + 1); }
  std::uint64_t sum(std::size_t from, std::size_t to) const {
    std::uint64_t sum = 0;
    for (auto at = from; at < to; ++at) sum += (at - from) % 2 == 0 ? byte(at) * 256 : byte(at);
    return sum;
  }
  std::uint64_t transport_sum() const {
    return sum(ip_->addresses, ip_->addresses_end) + ip_->protocol + (ip_->end - ip_->transport) +
           sum(ip_->transport, ip_->end);
  }

  // Copies pieces of the frame: offset and number of bytes.
  FlowFields& add(FlowHeader header, bool inner, std::initializer_list<std::pair<std::size_t, std::size_t>> pieces) {
    auto& fields = headers_[{header, inner}];
    auto to = fields.begin();
    for (const auto& [at, count] : pieces)
      for (std::size_t i = 0; i < count; ++i) *to++ = frame_.at(at + i);
    return fields;
  }

  void ethernet(std::size_t at, std::size_t end, bool inner) {
    if (end < at + 14) return;
    auto& fields = add(FlowHeader::ethernet, inner, {{at, 12}});
    at += 12;
    for (int tags = 0; word(at) == 0x8100 || word(at) == 0x88a8; ++tags, at += 4) {
      if (tags == 4 || end < at + 6) return;
      if (tags == 0) std::copy_n(&frame_.at(at + 2), 2, &fields[14]);
    }
    std::copy_n(&frame_.at(at), 2, &fields[12]);
    network(word(at), at + 2, end, inner);
  }

  void network(unsigned type, std::size_t at, std::size_t end, bool inner) {
    if (type == 0x0800) ipv4(at, end, inner);
    if (type == 0x86dd) ipv6(at, end, inner);
    if (type == 0x8847 || type == 0x8848) mpls(at, end, inner);
  }

  void mpls(std::size_t at, std::size_t end, bool inner) {
    if (end < at + 4) return;
    add(FlowHeader::mpls, inner, {{at, 4}});
    for (; byte(at + 2) % 2 == 0; at += 4)
      if (end < at + 8) return;
    at += 4;
    if (at == end) return;
    if (byte(at) / 16 == 4) ipv4(at, end, inner);
    if (byte(at) / 16 == 6) ipv6(at, end, inner);
  }

  void found(const IpPacket& packet, bool inner) {
    if (!inner && !headers_.contains({FlowHeader::mpls, false})) ip_ = packet;
  }

  void ipv4(std::size_t at, std::size_t end, bool inner) {
    if (end < at + 20 || byte(at) / 16 != 4) return;
    const std::size_t header = std::size_t{4} * (byte(at) % 16), total = word(at + 2);
    if (header < 20 || total < header || end < at + header) return;
    const bool fits = end >= at + total;
    end = std::min(end, at + total);
    auto& fields = add(FlowHeader::ipv4, inner, {{at + 12, 8}, {at + 9, 1}, {at + 1, 1}, {at + 8, 1}});
    const bool more = (byte(at + 6) & 0x20) != 0, whole_only = (byte(at + 6) & 0x40) != 0;
    fields[11] = std::byte((more ? 1u : 0u) + (whole_only ? 2u : 0u));
    const auto offset = word(at + 6) % 0x2000;
    if (fits) found({at, at + 12, at + 20, at + header, end, byte(at + 9), more || offset != 0}, inner);
    if (offset == 0) transport(byte(at + 9), at + header, end, inner);
  }

  void ipv6(std::size_t at, std::size_t end, bool inner) {
    if (end < at + 40 || byte(at) / 16 != 6) return;
    const bool fits = end >= at + 40 + word(at + 4);
    end = std::min(end, at + 40 + word(at + 4));
    auto& fields = add(FlowHeader::ipv6, inner, {{at + 8, 32}});
    fields[33] = std::byte(byte(at + 1) % 16);
    std::copy_n(&frame_.at(at + 2), 2, &fields[34]);
    fields[37] = std::byte(word(at) / 16 % 256);
    fields[38] = frame_[at + 7];
    auto next = byte(at + 6);
    auto to = at + 40;
    bool fragment = false, later = false, whole = true;
    while (!later && (next == 0 || next == 43 || next == 44 || next == 60)) {
      const auto bytes = next == 44 || end < to + 8 ? 8 : 8 * (byte(to + 1) + 1);
      whole = end >= to + bytes;
      if (!whole) break;
      fragment |= next == 44;
      later = next == 44 && word(to + 2) / 8 != 0;
      next = byte(to);
      to += bytes;
    }
    fields[36] = std::byte(next);
    if (!whole) return;
    if (fits) found({at, at + 8, at + 40, to, end, next, fragment}, inner);
    if (!later) transport(next, to, end, inner);
  }

  void transport(unsigned protocol, std::size_t at, std::size_t end, bool inner) {
    const auto bytes = end - at;
    if (protocol == 6 && bytes >= 20) add(FlowHeader::tcp, inner, {{at + 2, 2}, {at, 2}});
    if (protocol == 50 && bytes >= 8) add(FlowHeader::esp, inner, {{at, 8}});
    if (protocol == 17 && bytes >= 8) {
      add(FlowHeader::udp, inner, {{at + 2, 2}, {at, 2}});
      if (word(at + 2) == 4789 && bytes >= 16) {
        add(FlowHeader::vxlan, inner, {{at + 11, 4}})[0] = {};
        if (!inner) ethernet(at + 16, end, true);
      }
    }
    if (protocol == 47 && bytes >= 4) gre(at, end, inner);
    if (protocol == 4 && !inner) ipv4(at, end, true);
    if (protocol == 41 && !inner) ipv6(at, end, true);
  }

  void gre(std::size_t at, std::size_t end, bool inner) {
    const bool checksum = (byte(at) & 0x80) != 0, key = (byte(at) & 0x20) != 0, sequence = (byte(at) & 0x10) != 0;
    const auto key_at = at + (checksum ? 8 : 4);
    const auto packet = key_at + (key ? 4 : 0) + (sequence ? 4 : 0);
    if (end < packet) return;
    add(FlowHeader::gre, inner, {{at, 4}, {key_at, key ? 4 : 0}});
    if (inner) return;
    if (word(at + 2) == 0x6558)
      ethernet(packet, end, true);
    else
      network(word(at + 2), packet, end, true);
  }

  const FrameBytes& frame_;
  Headers headers_;
  std::optional<IpPacket> ip_;  // directly behind the outer Ethernet header
};

// A copy of exact size, so that a sanitizer sees reads beyond the end.
Headers headers_of(const FrameBytes& frame) {
  const FrameBytes exact(frame.begin(), frame.end());
  const FrameHeaders found(exact);
  Headers all;
  for (std::size_t header = 0; header < kFlowHeaders; ++header)
    for (const bool inner : {false, true})
      if (const auto* fields = found.find(FlowHeader(header), inner)) all[{FlowHeader(header), inner}] = *fields;
  return all;
}

// Frames of random layers, some of which are truncated; layers that no reader follows are random bytes.
class AnyFrame {
 public:
  explicit AnyFrame(unsigned seed) : random_(seed) {}

  unsigned below(std::size_t most) { return static_cast<unsigned>(random_() % most); }
  bool one_in(unsigned many) { return below(many) == 0; }
  std::byte byte() { return std::byte(below(256)); }
  FrameBytes noise(std::size_t count) {
    FrameBytes all(count);
    for (auto& one : all) one = byte();
    return all;
  }
  FrameBytes cut(const FrameBytes& all) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(below(all.size() + 1))};
  }

  FrameBytes ethernet(unsigned depth = 0) {
    auto frame = noise(12);
    if (one_in(3))
      for (auto tags = 1 + below(5); tags > 0; --tags) frame = frame + word(one_in(2) ? 0x8100 : 0x88a8) + noise(2);
    constexpr std::array kTypes{0x0800u, 0x86ddu, 0x0800u, 0x86ddu, 0x8847u, 0x8848u, 0x0806u};
    const auto type = kTypes[below(kTypes.size())];
    return frame + word(type) + network(type, depth);
  }

 private:
  FrameBytes network(unsigned type, unsigned depth) {
    if (type == 0x0800) return ipv4(depth);
    if (type == 0x86dd) return ipv6(depth);
    if (type == 0x6558) return ethernet(depth);
    return type == 0x0806 ? noise(below(30)) : mpls(depth);
  }
  FrameBytes mpls(unsigned depth) {
    FrameBytes labels;
    for (auto count = 1 + below(3); count > 0; --count) {
      labels = labels + noise(4);
      labels[labels.size() - 2] = std::byte(count == 1 ? 1 : 0) | (byte() & std::byte{0xfe});
    }
    return labels + (one_in(2) ? ipv4(depth) : ipv6(depth));
  }
  FrameBytes ipv4(unsigned depth) {
    const auto options = one_in(3) ? below(11) : 0;
    const auto [protocol, rest] = transport(depth);
    const auto offset = one_in(10) ? 1u << below(13) : 0, flags = one_in(4) ? below(8) : 2 * below(2);
    return bytes({0x45 + options, below(256)}) + word(static_cast<unsigned>(20 + 4 * options + rest.size())) +
           noise(2) + word(flags << 13 | offset) + bytes({below(256), protocol}) + noise(10 + 4 * options) + rest;
  }
  FrameBytes ipv6(unsigned depth) {
    auto [next, rest] = transport(depth);
    for (auto extensions = one_in(2) ? 1 + below(3) : 0; extensions > 0; --extensions) {
      constexpr std::array kKinds{0u, 43u, 60u, 44u};
      const auto kind = kKinds[below(kKinds.size())], units = kind == 44 ? 0 : below(3);
      const auto offset = one_in(4) ? below(0x10000) : below(8);
      const auto start = kind == 44 ? noise(1) + word(offset) : bytes({units}) + noise(2);
      rest = bytes({next}) + start + noise(4 + 8 * units) + rest;
      next = kind;
    }
    if (one_in(8)) rest = cut(rest);
    return bytes({0x60 | below(16)}) + noise(3) + word(static_cast<unsigned>(rest.size())) + bytes({next}) + noise(33) +
           rest;
  }
  std::pair<unsigned, FrameBytes> transport(unsigned depth) {
    constexpr unsigned kDeepest = 3;  // also tunnels within an inner layer, which no reader follows
    auto [protocol, rest] = depth == kDeepest || one_in(2) ? last() : tunnel(depth + 1);
    return {protocol, one_in(6) ? cut(rest) : rest};
  }
  std::pair<unsigned, FrameBytes> last() {
    switch (below(4)) {
      case 0: return {6, noise(20 + below(9))};
      case 1: return {17, noise(8 + below(12))};
      case 2: return {50, noise(8 + below(9))};
      default: return {below(256), noise(below(40))};
    }
  }
  std::pair<unsigned, FrameBytes> tunnel(unsigned depth) {
    switch (below(4)) {
      case 0: return {4, ipv4(depth)};
      case 1: return {41, ipv6(depth)};
      case 2: return {17, noise(2) + word(4789) + noise(12) + ethernet(depth)};
      default: break;
    }
    constexpr std::array kTypes{0x0800u, 0x86ddu, 0x6558u, 0x8847u, 0x8848u, 0x0806u};
    const auto flags = below(8), type = kTypes[below(kTypes.size())];  // checksum, key, sequence number
    const std::size_t words = (flags >> 2) + (flags >> 1 & 1) + (flags & 1);
    return {47, bytes({(flags & 4) << 5 | (flags & 3) << 4, below(256)}) + word(type) + noise(4 * words) +
                    network(type, depth)};
  }

  std::mt19937 random_;
};

void expect_agreement(const FrameBytes& frame) {
  const Reference reference(frame);
  ASSERT_EQ(headers_of(frame), reference.headers()) << ::testing::PrintToString(frame);
  ASSERT_EQ(checksums_right(frame), reference.checksums_right()) << ::testing::PrintToString(frame);
  auto filled = frame;
  fill_checksums(filled);
  ASSERT_EQ(filled, reference.with_checksums());
}

TEST(FrameReference, WholeFrames) {
  AnyFrame any(1);
  std::map<std::pair<FlowHeader, bool>, int> seen;
  int right = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto frame = any.ethernet() + any.noise(any.one_in(3) ? any.below(20) : 0);
    ASSERT_NO_FATAL_FAILURE(expect_agreement(frame));
    for (const auto& [header, fields] : headers_of(frame)) ++seen[header];
    fill_checksums(frame);
    ASSERT_NO_FATAL_FAILURE(expect_agreement(frame));
    right += checksums_right(frame);
  }
  EXPECT_EQ(seen.size(), 2 * kFlowHeaders) << "each in a tunnel as well";
  for (const auto& [header, count] : seen) EXPECT_GT(count, 100) << static_cast<int>(header.first) << header.second;
  EXPECT_GT(right, 5'000);
}

TEST(FrameReference, EveryTruncation) {
  AnyFrame any(2);
  for (int i = 0; i < 300; ++i) {
    auto frame = any.ethernet();
    for (; !frame.empty(); frame.pop_back()) ASSERT_NO_FATAL_FAILURE(expect_agreement(frame));
  }
}

TEST(FrameReference, EveryByteChanged) {
  AnyFrame any(3);
  for (int i = 0; i < 300; ++i) {
    auto whole = any.ethernet();
    fill_checksums(whole);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      auto changed = whole;
      changed[at] = any.one_in(2) ? any.byte() : changed[at] ^ std::byte(1u << any.below(8));
      ASSERT_NO_FATAL_FAILURE(expect_agreement(changed));
    }
  }
}

// The data makes the sum zero; a checksum of 0 would mean that there is none.
TEST(FrameReference, AUdpChecksumOfZeroIsWrittenAsOnes) {
  const auto datagram = udp(5, 6, word(0));
  for (auto frame : {ethernet(0x0800, ipv4(17, 1, 2, datagram)), ethernet(0x86dd, ipv6(17, {1}, {2}, datagram))}) {
    fill_checksums(frame);
    std::copy_n(frame.end() - 4, 2, frame.end() - 2);
    fill_checksums(frame);
    EXPECT_EQ(FrameBytes(frame.end() - 4, frame.end() - 2), word(0xffff));
    expect_agreement(frame);
  }
}

}  // namespace
}  // namespace rnicsim::nic

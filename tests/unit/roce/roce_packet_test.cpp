// SPDX-License-Identifier: Apache-2.0
// Framing, parsing and the ICRC, checked with frames that two Linux Soft-RoCE guests exchanged.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::roce {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> captured_frames() {
  std::ifstream file(RNICSIM_SOURCE_DIR "/tests/unit/roce/rxe_frames.hex");
  std::vector<Bytes> frames;
  for (std::string line; std::getline(file, line);) {
    Bytes frame;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      frame.push_back(static_cast<std::byte>(std::stoi(line.substr(i, 2), nullptr, 16)));
    frames.push_back(frame);
  }
  return frames;
}

std::uint32_t icrc_of(const Bytes& frame, const ParsedFrame& parsed) {
  const std::span all(frame);
  const auto end = parsed.payload_offset + parsed.payload_bytes;
  return icrc(all.subspan(kEthernetBytes, parsed.payload_offset - kEthernetBytes),
              all.subspan(parsed.payload_offset, parsed.payload_bytes), all.subspan(end, parsed.headers.bth.pad));
}

std::uint32_t icrc_in(const Bytes& frame, const ParsedFrame& parsed) {
  const auto at = parsed.payload_offset + parsed.payload_bytes + parsed.headers.bth.pad;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kIcrcBytes; ++i) value |= std::to_integer<std::uint32_t>(frame[at + i]) << (8 * i);
  return value;
}

TEST(Capture, ParsesWithTheRightIcrc) {
  const auto frames = captured_frames();
  ASSERT_GT(frames.size(), 20u);
  for (const auto& frame : frames) {
    const auto parsed = parse_frame(frame, frame.size());
    ASSERT_EQ(parsed.error, ParseError::none);
    EXPECT_EQ(icrc_of(frame, parsed), icrc_in(frame, parsed)) << info(parsed.headers.bth.opcode).name;
  }
}

TEST(Capture, IsWrittenAgainByteForByte) {
  for (const auto& frame : captured_frames()) {
    const auto parsed = parse_frame(frame, frame.size());
    std::array<std::byte, kMaxFrameHeader> header;
    const auto size = frame_header(parsed.addresses, parsed.headers, parsed.payload_bytes, header);
    ASSERT_EQ(size, parsed.payload_offset);
    const auto again = parse_frame(std::span(header).first(size), frame.size());
    EXPECT_EQ(again.error, ParseError::none);
    EXPECT_EQ(again.headers, parsed.headers);
    EXPECT_EQ(again.addresses, parsed.addresses);
    // rxe counts the IP identification and we do not: everything from the UDP header on must be equal.
    const auto udp = kEthernetBytes + kIpv4Bytes;
    EXPECT_TRUE(std::equal(header.begin() + udp, header.begin() + size, frame.begin() + udp));
  }
}

TEST(Parser, Ipv6RoundTrip) {
  FrameAddresses addresses;
  addresses.source[0] = 0xfe;
  addresses.destination[0] = 0xfd;
  addresses.traffic_class = 0x5a;
  addresses.flow_label = 0x12345;
  addresses.hop_limit = 7;
  Headers headers;
  headers.bth.opcode = Opcode::write_only;
  headers.bth.pad = 3;
  headers.reth = Reth{1, {2}, 5};
  std::array<std::byte, kMaxFrameHeader> header;
  const auto size = frame_header(addresses, headers, 5, header);
  const auto parsed = parse_frame(std::span(header).first(size), size + 5 + 3 + kIcrcBytes);
  ASSERT_EQ(parsed.error, ParseError::none);
  EXPECT_EQ(parsed.addresses, addresses);
  EXPECT_EQ(parsed.headers, headers);
  EXPECT_EQ(parsed.payload_bytes, 5u);
}

// A switch inserts a tag into a captured frame: four bytes, which the ICRC does not cover.
TEST(Parser, AVlanTag) {
  for (auto frame : captured_frames()) {
    const auto plain = parse_frame(frame, frame.size());
    const std::array tag{std::byte{0x81}, std::byte{0x00}, std::byte{0xa0}, std::byte{0x64}};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    const auto parsed = parse_frame(frame, frame.size());
    ASSERT_EQ(parsed.error, ParseError::none);
    EXPECT_FALSE(is_foreign(frame));
    EXPECT_EQ(parsed.addresses.vlan, 100);
    EXPECT_EQ(parsed.addresses.service_level, 5);
    EXPECT_EQ(parsed.addresses.tag(), 0xa064);
    EXPECT_EQ(parsed.headers, plain.headers);
    EXPECT_EQ(parsed.payload_offset, plain.payload_offset + kVlanTagBytes);
    const std::span all(frame);
    const auto link = link_header_bytes(all);
    ASSERT_EQ(link, kEthernetBytes + kVlanTagBytes);
    const auto end = parsed.payload_offset + parsed.payload_bytes;
    EXPECT_EQ(icrc(all.subspan(link, parsed.payload_offset - link),
                   all.subspan(parsed.payload_offset, parsed.payload_bytes), all.subspan(end, parsed.headers.bth.pad)),
              icrc_in(frame, parsed));
    std::array<std::byte, kMaxFrameHeader> header;
    const auto size = frame_header(parsed.addresses, parsed.headers, parsed.payload_bytes, header);
    EXPECT_EQ(size, frame_header_bytes(parsed.addresses, parsed.headers.bth.opcode));
    EXPECT_EQ(parse_frame(std::span(header).first(size), frame.size()).addresses, parsed.addresses);
    for (std::size_t cut = 0; cut < frame.size(); ++cut)
      EXPECT_NE(parse_frame(all.first(cut), cut).error, ParseError::none) << cut;
  }
}

// With two tags the inner tag is the frame's type, which is not IP.
TEST(Parser, TwoVlanTagsAreForeign) {
  auto frame = captured_frames().front();
  const std::array tag{std::byte{0x81}, std::byte{0x00}, std::byte{0x00}, std::byte{0x64}};
  for (int i = 0; i < 2; ++i) frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  EXPECT_EQ(parse_frame(frame, frame.size()).error, ParseError::not_ip);
  EXPECT_TRUE(is_foreign(frame));
}

TEST(Parser, EveryTruncationIsAnError) {
  for (const auto& frame : captured_frames())
    for (std::size_t size = 0; size < frame.size(); ++size)
      EXPECT_NE(parse_frame(std::span(frame).first(size), size).error, ParseError::none) << size;
}

TEST(Parser, NamesWhatIsWrong) {
  const auto frame = captured_frames().front();
  const auto with = [&](std::size_t at, int value) {
    auto changed = frame;
    changed[at] = static_cast<std::byte>(value);
    return parse_frame(changed, changed.size()).error;
  };
  EXPECT_EQ(with(12, 0x86), ParseError::not_ip);
  EXPECT_EQ(with(14, 0x65), ParseError::bad_ip_header);
  EXPECT_EQ(with(22, 0x01), ParseError::bad_checksum);
  EXPECT_EQ(with(37, 0x00), ParseError::not_roce);
  EXPECT_EQ(with(39, 0x00), ParseError::bad_udp_length);
  EXPECT_EQ(with(42, 0x15), ParseError::bad_opcode);
  EXPECT_EQ(with(43, 0x0f), ParseError::bad_version);
}

TEST(Parser, MutationsNeverReachOutsideTheFrame) {
  std::mt19937 random(7);
  const auto frames = captured_frames();
  for (int round = 0; round < 200'000; ++round) {
    auto frame = frames[random() % frames.size()];
    if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
    for (unsigned n = random() % 4; n > 0 && !frame.empty(); --n)
      frame[random() % std::min<std::size_t>(frame.size(), 80)] = static_cast<std::byte>(random());
    const auto parsed = parse_frame(frame, frame.size());
    // A frame that may belong to another protocol is treated as foreign.
    const bool other = parsed.error == ParseError::not_ip || parsed.error == ParseError::not_roce;
    const bool foreign = is_foreign(frame);
    EXPECT_TRUE(foreign || !other);
    EXPECT_TRUE(!foreign || parsed.error != ParseError::none);
    if (parsed.error != ParseError::none) continue;
    EXPECT_LE(parsed.payload_offset + parsed.payload_bytes + parsed.headers.bth.pad + kIcrcBytes, frame.size());
  }
}

TEST(SourcePort, IsHighAndSteady) {
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const auto port = source_port_for({n}, {n * 7});
    EXPECT_GE(port, kLeastSourcePort);
    EXPECT_EQ(port, source_port_for({n}, {n * 7}));
  }
}

}  // namespace
}  // namespace rnicsim::roce

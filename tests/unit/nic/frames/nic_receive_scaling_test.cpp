// SPDX-License-Identifier: Apache-2.0
// Receive-side scaling against Microsoft's published verification suite, with real frames.
#include <gtest/gtest.h>

#include "model/nic/packets/receive/receive_scaling.h"
#include "tests/unit/nic/frames/raw_frames.h"

namespace rnicsim::nic::receive_scaling_test {
namespace {

using namespace test;

constexpr unsigned kIpv4Type = 0x0800, kIpv6Type = 0x86dd, kTcp = 6, kUdp = 17, kEsp = 50;

RssKey published_key() {
  const auto key = bytes({0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                          0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                          0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa});
  RssKey all;
  std::ranges::copy(key, all.begin());
  return all;
}

std::uint32_t hash(std::uint32_t fields, const FrameBytes& frame) {
  return rss_hash({.fields = fields, .key = published_key(), .queues = {{1}}}, FrameHeaders(frame));
}

constexpr std::uint32_t address(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr auto kIpv4Fields = rss_field::kSourceIpv4 | rss_field::kDestinationIpv4;
constexpr auto kIpv6Fields = rss_field::kSourceIpv6 | rss_field::kDestinationIpv6;
constexpr auto kTcpFields = rss_field::kSourceTcp | rss_field::kDestinationTcp;
constexpr auto kUdpFields = rss_field::kSourceUdp | rss_field::kDestinationUdp;

struct V4 {
  std::uint32_t source;
  unsigned source_port;
  std::uint32_t destination;
  unsigned destination_port;
  std::uint32_t of_addresses;
  std::uint32_t of_all;
};
constexpr V4 kV4[] = {
    {address(66, 9, 149, 187), 2794, address(161, 142, 100, 80), 1766, 0x323e8fc2, 0x51ccc178},
    {address(199, 92, 111, 2), 14230, address(65, 69, 140, 83), 4739, 0xd718262a, 0xc626b0ea},
    {address(24, 19, 198, 95), 12898, address(12, 22, 207, 184), 38024, 0xd2d0a5de, 0x5c2b394a},
    {address(38, 27, 205, 30), 48228, address(209, 142, 163, 6), 2217, 0x82989176, 0xafc7327f},
    {address(153, 39, 163, 191), 44251, address(202, 188, 127, 2), 1303, 0x5d1809c5, 0x10e828a2},
};

TEST(ReceiveScaling, PublishedHashesOverIpv4) {
  for (const auto& row : kV4) {
    const auto with = [&](unsigned protocol, const FrameBytes& rest) {
      return ethernet(kIpv4Type, ipv4(protocol, row.source, row.destination, rest));
    };
    const auto over_tcp = with(kTcp, tcp(row.source_port, row.destination_port));
    const auto over_udp = with(kUdp, udp(row.source_port, row.destination_port));
    EXPECT_EQ(hash(kIpv4Fields, over_tcp), row.of_addresses);
    EXPECT_EQ(hash(kIpv4Fields | kTcpFields, over_tcp), row.of_all);
    EXPECT_EQ(hash(kIpv4Fields | kUdpFields, over_udp), row.of_all);
    EXPECT_EQ(hash(kIpv4Fields | kTcpFields, over_udp), row.of_addresses) << "of another protocol than the ports'";
  }
}

struct V6 {
  Ipv6Address source;
  unsigned source_port;
  Ipv6Address destination;
  unsigned destination_port;
  std::uint32_t of_addresses;
  std::uint32_t of_all;
};
const V6 kV6[] = {
    {{0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7},
     2794,
     {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1},
     1766,
     0x2cc18cd5,
     0x40207d3d},
    {{0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab},
     14230,
     {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
     4739,
     0x0f0c461c,
     0xdde51bbf},
    {{0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     44251,
     {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     38024,
     0x4b61e985,
     0x02d1feef},
};

TEST(ReceiveScaling, PublishedHashesOverIpv6) {
  for (const auto& row : kV6) {
    const auto frame =
        ethernet(kIpv6Type, ipv6(kTcp, row.source, row.destination, tcp(row.source_port, row.destination_port)));
    EXPECT_EQ(hash(kIpv6Fields, frame), row.of_addresses);
    EXPECT_EQ(hash(kIpv6Fields | kTcpFields, frame), row.of_all);
    EXPECT_EQ(hash(kIpv4Fields, frame), 0u);
  }
}

TEST(ReceiveScaling, FieldsStandInOneOrderWhateverTheirBits) {
  const auto frame = ethernet(kIpv4Type, ipv4(kTcp, 1, 2, tcp(3, 4)));
  const auto swapped = ethernet(kIpv4Type, ipv4(kTcp, 2, 1, tcp(4, 3)));
  EXPECT_NE(hash(kIpv4Fields | kTcpFields, frame), hash(kIpv4Fields | kTcpFields, swapped));
  EXPECT_EQ(hash(rss_field::kSourceTcp, frame), hash(rss_field::kDestinationTcp, swapped));
  EXPECT_EQ(hash(rss_field::kSourceIpv4, frame), hash(rss_field::kDestinationIpv4, swapped));
}

TEST(ReceiveScaling, TheSecurityParameterIndex) {
  const auto frame = [](std::uint32_t spi) { return ethernet(kIpv4Type, ipv4(kEsp, 1, 2, word32(spi) + word32(9))); };
  EXPECT_EQ(hash(rss_field::kSpi, frame(0x80000000)), 0x6d5a56dau) << "one bit: the key's first word";
  EXPECT_EQ(hash(rss_field::kSpi, frame(0)), 0u);
}

TEST(ReceiveScaling, InnerHeadersOnly) {
  const auto inner = ethernet(kIpv4Type, ipv4(kTcp, 7, 8, tcp(9, 10)));
  const auto outer = [&](std::uint32_t source) {
    return ethernet(kIpv4Type, ipv4(kUdp, source, 2, udp(5, 4789, FrameBytes(8) + inner)));
  };
  const auto fields = kIpv4Fields | kTcpFields;
  EXPECT_EQ(hash(fields | rss_field::kInner, outer(1)), hash(fields, inner));
  EXPECT_EQ(hash(fields | rss_field::kInner, outer(1)), hash(fields | rss_field::kInner, outer(0x12345678)));
  EXPECT_NE(hash(fields, outer(1)), hash(fields, outer(0x12345678)));
}

TEST(ReceiveScaling, TheTableKeepsItsLimit) {
  RssTable table(1);
  EXPECT_TRUE(table.add({5}, {.fields = 0, .key = {}, .queues = {{1}, {2}}}));
  EXPECT_FALSE(table.add({5}, {.fields = 0, .key = {}, .queues = {{1}}}));
  EXPECT_FALSE(table.add({6}, {.fields = 0, .key = {}, .queues = {{1}}}));
  EXPECT_TRUE(table.uses({2}));
  EXPECT_FALSE(table.uses({3}));
  EXPECT_TRUE(table.remove({5}));
  EXPECT_FALSE(table.remove({5}));
  EXPECT_EQ(table.find({5}), nullptr);
}

}  // namespace
}  // namespace rnicsim::nic::receive_scaling_test

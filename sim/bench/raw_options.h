// SPDX-License-Identifier: Apache-2.0
// Options of a flow of raw packets: the frames that are sent, and the queues that receive them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim::bench {

class TableReader;

enum class RssField : std::uint8_t { src_ipv4, dst_ipv4, src_port_udp, dst_port_udp };
inline constexpr std::size_t kRssFields = 4;

std::string_view to_string(RssField field);

struct RawOptions {
  static constexpr std::uint32_t kHeaderBytes = 42;  // Ethernet, IPv4, UDP
  static constexpr std::uint32_t kLeastFrame = 60;
  static constexpr std::uint32_t kReceives = 1024;

  std::uint32_t flows = 64;
  bool checksums = false;
  std::optional<std::uint32_t> tso_mss;
  std::uint32_t rx_queues = 1;
  // The key of Microsoft's suite for the verification of RSS.
  std::array<std::uint8_t, 40> rss_key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                          0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                          0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                          0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
  std::vector<RssField> rss_fields = {RssField::src_ipv4, RssField::dst_ipv4, RssField::src_port_udp,
                                      RssField::dst_port_udp};

  // Length of the longest frame that a message becomes, in bytes.
  std::uint32_t frame_bytes(std::uint32_t message) const;
  std::string key_text() const;
};

// ConfigError.
void read_raw_options(TableReader& reader, RawOptions& options);
// ConfigError: a flow of another transport has one of these keys.
void refuse_raw_options(const TableReader& reader);

}  // namespace rnicsim::sim::bench

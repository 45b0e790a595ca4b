// SPDX-License-Identifier: Apache-2.0
// Numbers and sizes of the network protocols in a frame, and access to fields (IEEE 802.1Q, RFC 791, 8200, IANA).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace rnicsim::nic::network {

using Bytes = std::span<const std::byte>;

inline unsigned byte_at(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }
inline unsigned word_at(Bytes bytes, std::size_t at) { return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1); }
// Writes the low 16 bits of `value`.
inline void put_word(std::span<std::byte> bytes, std::size_t at, std::size_t value) {
  bytes[at] = std::byte(value >> 8 & 0xff);
  bytes[at + 1] = std::byte(value & 0xff);
}

// Ethernet: two addresses, then VLAN tags, then the type.
inline constexpr std::size_t kAddresses = 12, kTag = 4, kMostTags = 4;
namespace type {
inline constexpr unsigned kIpv4 = 0x0800, kIpv6 = 0x86dd, kVlan = 0x8100, kServiceVlan = 0x88a8, kMpls = 0x8847,
                          kMplsGroup = 0x8848, kEthernet = 0x6558;  // kEthernet: in GRE
}  // namespace type
inline bool is_tag(unsigned ether_type) { return ether_type == type::kVlan || ether_type == type::kServiceVlan; }

// The header after the VLAN tags: type and offset.
struct Carried {
  unsigned ether_type;
  std::size_t at;
};
inline std::optional<Carried> carried_in(Bytes frame) {
  auto at = kAddresses;
  for (std::size_t tags = 0; frame.size() >= at + 2; ++tags, at += kTag) {
    const auto found = word_at(frame, at);
    if (tags == kMostTags || !is_tag(found)) return Carried{found, at + 2};
  }
  return std::nullopt;
}

namespace protocol {
inline constexpr unsigned kHopByHop = 0, kIpv4 = 4, kTcp = 6, kUdp = 17, kIpv6 = 41, kRouting = 43, kFragment = 44,
                          kGre = 47, kEsp = 50, kDestination = 60;
}  // namespace protocol
// True for IPv6 extension headers before the transport header.
inline bool is_extension(unsigned header) {
  using namespace protocol;
  return header == kHopByHop || header == kRouting || header == kFragment || header == kDestination;
}
inline constexpr std::size_t kExtensionUnit = 8;

inline constexpr std::size_t kLeastIpv4 = 20, kIpv6 = 40, kLeastTcp = 20, kUdp = 8;

}  // namespace rnicsim::nic::network

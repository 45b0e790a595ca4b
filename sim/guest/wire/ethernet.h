// SPDX-License-Identifier: Apache-2.0
// Fields of Ethernet, ARP and IP headers that a live wire reads or changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rnicsim::sim::ethernet {

using Mac = std::array<std::uint8_t, 6>;
using Ipv4 = std::array<std::uint8_t, 4>;

inline constexpr std::size_t kHeaderBytes = 14;
inline constexpr std::uint16_t kIpv4Type = 0x0800, kArpType = 0x0806, kIpv6Type = 0x86dd;
inline constexpr std::uint8_t kIcmp = 1, kTcp = 6, kIcmpv6 = 58;
inline constexpr Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// Offsets from the beginning of a frame.
inline constexpr std::size_t kDestination = 0, kSource = 6, kType = 12;
inline constexpr std::size_t kIpv4Protocol = 23, kIpv4Source = 26, kIpv4Destination = 30, kIpv4End = 34;
inline constexpr std::size_t kIpv6Next = 20, kIpv6Source = 22, kIpv6Destination = 38, kIpv6End = 54;
inline constexpr std::size_t kArpOperation = 20, kArpSenderMac = 22, kArpSenderIp = 28, kArpTargetMac = 32,
                             kArpTargetIp = 38, kArpEnd = 42;

// Precondition: the frame has these bytes.
template <std::size_t Bytes>
std::array<std::uint8_t, Bytes> field(std::span<const std::byte> frame, std::size_t offset) {
  std::array<std::uint8_t, Bytes> value;
  std::memcpy(value.data(), frame.data() + offset, Bytes);
  return value;
}
template <std::size_t Bytes>
void set_field(std::span<std::byte> frame, std::size_t offset, const std::array<std::uint8_t, Bytes>& value) {
  std::memcpy(frame.data() + offset, value.data(), Bytes);
}
inline Mac mac_at(std::span<const std::byte> frame, std::size_t offset) { return field<6>(frame, offset); }
inline Ipv4 ipv4_at(std::span<const std::byte> frame, std::size_t offset) { return field<4>(frame, offset); }
inline std::uint16_t type_of(std::span<const std::byte> frame) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(frame[kType]) << 8 |
                                    std::to_integer<unsigned>(frame[kType + 1]));
}
inline bool is_group(const Mac& mac) { return (mac[0] & 1) != 0; }

inline bool is_arp(std::span<const std::byte> frame) { return frame.size() >= kArpEnd && type_of(frame) == kArpType; }
inline bool is_ipv4(std::span<const std::byte> frame) {
  return frame.size() >= kIpv4End && type_of(frame) == kIpv4Type;
}
inline bool is_ipv6(std::span<const std::byte> frame) {
  return frame.size() >= kIpv6End && type_of(frame) == kIpv6Type;
}

// IPv4 address of the frame's sender, from the IP or the ARP header.
inline std::optional<Ipv4> sender_of(std::span<const std::byte> frame) {
  if (is_arp(frame)) return ipv4_at(frame, kArpSenderIp);
  if (is_ipv4(frame)) return ipv4_at(frame, kIpv4Source);
  return std::nullopt;
}

// ARP request of `sender` for the MAC address of `target`.
inline std::array<std::byte, kArpEnd> arp_request(const Mac& mac, const Ipv4& sender, const Ipv4& target) {
  static constexpr std::array<std::uint8_t, 10> kRequest{0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01};
  std::array<std::byte, kArpEnd> frame{};
  set_field(frame, kDestination, kBroadcast);
  set_field(frame, kSource, mac);
  set_field(frame, kType, kRequest);
  set_field(frame, kArpSenderMac, mac);
  set_field(frame, kArpSenderIp, sender);
  set_field(frame, kArpTargetIp, target);
  return frame;
}

}  // namespace rnicsim::sim::ethernet

// SPDX-License-Identifier: Apache-2.0
// Builds Ethernet frames header by header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace rnicsim::nic::test {

using FrameBytes = std::vector<std::byte>;

inline FrameBytes bytes(std::initializer_list<unsigned> values) {
  FrameBytes all;
  for (const auto value : values) all.push_back(std::byte(value));
  return all;
}
inline FrameBytes word(unsigned value) { return bytes({value >> 8 & 0xff, value & 0xff}); }
inline FrameBytes word32(std::uint32_t value) {
  return bytes({value >> 24, value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff});
}
inline FrameBytes operator+(FrameBytes a, const FrameBytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline FrameBytes ethernet(unsigned type, const FrameBytes& rest, unsigned destination = 0x02) {
  return bytes({destination, 1, 2, 3, 4, 5, 0x06, 11, 12, 13, 14, 15}) + word(type) + rest;
}
inline FrameBytes vlan(unsigned tag, unsigned type, const FrameBytes& rest) { return word(tag) + word(type) + rest; }
inline FrameBytes ipv4(unsigned protocol, std::uint32_t source, std::uint32_t destination, const FrameBytes& rest,
                       unsigned fragment = 0) {
  return bytes({0x45, 0x1c}) + word(static_cast<unsigned>(20 + rest.size())) + bytes({0, 0}) + word(fragment) +
         bytes({63, protocol, 0, 0}) + word32(source) + word32(destination) + rest;
}
using Ipv6Address = std::array<std::uint8_t, 16>;
inline FrameBytes ipv6(unsigned next, const Ipv6Address& source, const Ipv6Address& destination,
                       const FrameBytes& rest) {
  FrameBytes addresses;
  for (const auto* address : {&source, &destination})
    for (const auto byte : *address) addresses.push_back(std::byte(byte));
  return bytes({0x61, 0xc2, 0x34, 0x56}) + word(static_cast<unsigned>(rest.size())) + bytes({next, 62}) + addresses +
         rest;
}
inline FrameBytes tcp(unsigned source, unsigned destination) {
  return word(source) + word(destination) + FrameBytes(8) + bytes({0x50, 0}) + FrameBytes(6);
}
inline FrameBytes udp(unsigned source, unsigned destination, const FrameBytes& rest = FrameBytes(4)) {
  return word(source) + word(destination) + word(static_cast<unsigned>(8 + rest.size())) + word(0) + rest;
}

}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Properties of addresses of the simulated out-of-band network.
#pragma once

#include <algorithm>
#include <cstring>

#include "model/abi/attach.h"

namespace rnicsim::abi {

inline constexpr std::uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

inline bool is_v4(const NetAddress& address) {
  return std::memcmp(address.ip, kMappedPrefix, sizeof kMappedPrefix) == 0;
}
inline bool is_wildcard(const NetAddress& address) {
  const std::uint8_t* begin = address.ip + (is_v4(address) ? 12 : 0);
  return std::all_of(begin, address.ip + 16, [](std::uint8_t byte) { return byte == 0; });
}
inline bool is_loopback(const NetAddress& address) {
  if (is_v4(address)) return address.ip[12] == 127;
  return std::all_of(address.ip, address.ip + 15, [](std::uint8_t byte) { return byte == 0; }) && address.ip[15] == 1;
}
inline bool same_prefix(const std::uint8_t* a, const std::uint8_t* b, unsigned bits) {
  const unsigned whole = bits / 8;
  if (std::memcmp(a, b, whole) != 0) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}
// A prefix of 0 bits means that the interface has no address of that IP version.
inline bool in_subnet(const NetAddress& address, const NetworkInterface& interface) {
  if (is_v4(address))
    return interface.ipv4_prefix != 0 && same_prefix(address.ip + 12, interface.ipv4, interface.ipv4_prefix);
  return interface.ipv6_prefix != 0 && same_prefix(address.ip, interface.ipv6, interface.ipv6_prefix);
}
inline bool same_ip(const NetAddress& a, const NetAddress& b) { return std::memcmp(a.ip, b.ip, sizeof a.ip) == 0; }
// True: a socket bound to `local` receives data for `address`. The IPv6 wildcard includes IPv4, unless v6_only.
inline bool covers(const NetAddress& local, bool v6_only, const NetAddress& address) {
  if (!is_wildcard(local)) return same_ip(local, address);
  if (is_v4(local)) return is_v4(address);
  return !v6_only || !is_v4(address);
}

}  // namespace rnicsim::abi

// SPDX-License-Identifier: Apache-2.0
// The Ethernet address of the IP multicast group with this GID (RFC 1112, RFC 2464).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace rnicsim {

// nullopt: the GID is not a multicast group.
inline std::optional<std::array<std::uint8_t, 6>> mac_of_group(const std::array<std::uint8_t, 16>& gid) {
  if (gid[0] == 0xff) return std::array<std::uint8_t, 6>{0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
  const bool ipv4 = std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
                    gid[10] == 0xff && gid[11] == 0xff;
  if (!ipv4 || gid[12] >> 4 != 0xe) return std::nullopt;
  return std::array<std::uint8_t, 6>{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f), gid[14], gid[15]};
}

inline bool is_group(const std::array<std::uint8_t, 16>& gid) { return mac_of_group(gid).has_value(); }

}  // namespace rnicsim

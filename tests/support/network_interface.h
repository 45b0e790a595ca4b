// SPDX-License-Identifier: Apache-2.0
// Network interface of a simulated host, as a topology describes the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "model/abi/attach.h"

namespace rnicsim::testing {

// `number` starts with 1 (name h0); addresses 10.0.0.NUMBER/24 and fd00::NUMBER/64.
inline abi::NetworkInterface network_interface(std::uint8_t number) {
  abi::NetworkInterface entry;
  std::snprintf(entry.name, sizeof entry.name, "h%u", number - 1u);
  const std::uint8_t ipv4[] = {10, 0, 0, number};
  std::ranges::copy(ipv4, entry.ipv4);
  entry.ipv4_prefix = 24;
  entry.ipv6[0] = 0xfd;
  entry.ipv6[15] = number;
  entry.ipv6_prefix = 64;
  entry.mac[0] = 2;
  entry.mac[5] = number;
  return entry;
}

}  // namespace rnicsim::testing

// SPDX-License-Identifier: Apache-2.0
// Addresses of the out-of-band network as the IP stack has them. Includes the library: for sources.
#pragma once

#include <lwip/ip_addr.h>

#include <cstring>

#include "model/abi/net_address.h"

namespace rnicsim::sim {

inline constexpr std::size_t kIpv4Bytes = 4, kIpv6Bytes = 16;

inline ip_addr_t to_lwip(const abi::NetAddress& address) {
  ip_addr_t result{};
  if (abi::is_v4(address)) {
    IP_SET_TYPE_VAL(result, IPADDR_TYPE_V4);
    std::memcpy(ip_2_ip4(&result), address.ip + sizeof abi::kMappedPrefix, kIpv4Bytes);
  } else {
    IP_SET_TYPE_VAL(result, IPADDR_TYPE_V6);
    std::memcpy(ip_2_ip6(&result)->addr, address.ip, kIpv6Bytes);
  }
  return result;
}

inline abi::NetAddress from_lwip(const ip_addr_t& address, std::uint16_t port) {
  abi::NetAddress result;
  result.port = port;
  if (IP_IS_V6_VAL(address)) {
    std::memcpy(result.ip, ip_2_ip6(&address)->addr, kIpv6Bytes);
  } else {
    std::memcpy(result.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    std::memcpy(result.ip + sizeof abi::kMappedPrefix, ip_2_ip4(&address), kIpv4Bytes);
  }
  return result;
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/network/host_addresses.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/abi/net_address.h"

namespace rnicsim::sim {

std::optional<std::uint32_t> HostAddresses::host_of(std::uint32_t from, const abi::NetAddress& address) const {
  if (is_loopback(address) || is_wildcard(address)) return from;
  const auto found = std::ranges::find_if(interfaces_, [&](const abi::NetworkInterface& interface) {
    return is_v4(address) ? std::memcmp(address.ip + 12, interface.ipv4, 4) == 0
                          : std::memcmp(address.ip, interface.ipv6, 16) == 0;
  });
  return found != interfaces_.end() ? std::optional<std::uint32_t>(found->host) : std::nullopt;
}

abi::NetAddress HostAddresses::own_address(std::uint32_t host, const abi::NetAddress& like) const {
  if (is_loopback(like)) return like;
  const auto reaches = [&](const abi::NetworkInterface& interface) {
    return interface.host == host && in_subnet(like, interface);
  };
  const auto found = std::ranges::find_if(interfaces_, reaches);
  const abi::NetworkInterface& own = found != interfaces_.end() ? *found : interfaces_[host];
  abi::NetAddress address;
  if (is_v4(like)) {
    std::memcpy(address.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    std::memcpy(address.ip + 12, own.ipv4, 4);
  } else {
    std::memcpy(address.ip, own.ipv6, 16);
  }
  return address;
}

std::optional<std::uint16_t> EphemeralPorts::take(std::uint32_t host, const InUse& in_use) {
  std::uint16_t& next = next_.try_emplace(host, first_).first->second;
  for (std::uint32_t tried = first_; tried <= 0xffff; ++tried) {
    const std::uint16_t port = std::exchange(next, next == 0xffff ? first_ : std::uint16_t(next + 1));
    if (!in_use(port)) return port;
  }
  return std::nullopt;
}

}  // namespace rnicsim::sim

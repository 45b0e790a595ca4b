// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/ip_address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rnicsim::host {

int IpAddress::parse(std::span<const std::byte> sockaddr, IpAddress& address) {
  sa_family_t family = AF_UNSPEC;
  if (sockaddr.size() < sizeof family) return EINVAL;
  std::memcpy(&family, sockaddr.data(), sizeof family);
  address = {};
  if (family == AF_INET) {
    sockaddr_in in{};
    if (sockaddr.size() < sizeof in) return EINVAL;
    std::memcpy(&in, sockaddr.data(), sizeof in);
    std::memcpy(address.bytes.data() + 12, &in.sin_addr, sizeof in.sin_addr);
    address.port = ntohs(in.sin_port);
    return 0;
  }
  if (family != AF_INET6) return EAFNOSUPPORT;
  sockaddr_in6 in{};
  if (sockaddr.size() < sizeof in) return EINVAL;
  std::memcpy(&in, sockaddr.data(), sizeof in);
  address.ipv6 = true;
  std::memcpy(address.bytes.data(), &in.sin6_addr, sizeof in.sin6_addr);
  address.port = ntohs(in.sin6_port);
  address.scope = in.sin6_scope_id;
  return 0;
}

sockaddr_storage IpAddress::to_sockaddr() const {
  sockaddr_storage storage{};
  if (ipv6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, bytes.data(), sizeof in.sin6_addr);
    in.sin6_scope_id = scope;
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, bytes.data() + 12, sizeof in.sin_addr);
    std::memcpy(&storage, &in, sizeof in);
  }
  return storage;
}

bool IpAddress::is_any() const {
  const auto first = bytes.begin() + (ipv6 ? 0 : 12);
  return std::all_of(first, bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_loopback() const {
  if (!ipv6) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](std::uint8_t byte) { return byte == 0; }) && bytes[15] == 1;
}

}  // namespace rnicsim::host

// SPDX-License-Identifier: Apache-2.0
// A socket address: IPv4 (mapped, as in a GID) or IPv6, and a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/host/gids.h"

namespace rnicsim::host {

struct IpAddress {
  bool ipv6 = false;
  Gid bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::uint16_t port = 0;
  std::uint32_t scope = 0;

  // 0 or errno. EINVAL: `sockaddr` is too short; EAFNOSUPPORT: another family than IPv4 or IPv6.
  static int parse(std::span<const std::byte> sockaddr, IpAddress& address);
  static IpAddress of_gid(const Gid& gid, bool ipv6, std::uint16_t port) { return {ipv6, gid, port, 0}; }
  sockaddr_storage to_sockaddr() const;
  socklen_t sockaddr_bytes() const { return ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  bool is_any() const;
  bool is_loopback() const;
  // True for addresses of no device: rdma_cm binds 127.0.0.1 and ::1 as it binds 0.0.0.0 and ::.
  bool is_wildcard() const { return is_any() || is_loopback(); }
  bool is_link_local() const { return ipv6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  bool is_group() const { return ipv6 ? bytes[0] == 0xff : bytes[12] >> 4 == 0xe; }
  bool same_host(const IpAddress& other) const { return ipv6 == other.ipv6 && bytes == other.bytes; }
};

}  // namespace rnicsim::host

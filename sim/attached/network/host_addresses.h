// SPDX-License-Identifier: Apache-2.0
// Addresses of the simulated out-of-band network, by host, and the free ports there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

enum class IpVersion { v4, v6 };

class HostAddresses {
 public:
  explicit HostAddresses(std::vector<abi::NetworkInterface> interfaces) : interfaces_(std::move(interfaces)) {}

  // The host that a program on `from` reaches at `address`. nullopt: no host has the address.
  std::optional<std::uint32_t> host_of(std::uint32_t from, const abi::NetAddress& address) const;
  // Source address, of the IP version of `like`, with which `host` reaches `like`: the address of the device whose
  // subnet holds `like`, else of the host's first device. A loopback address is returned unchanged.
  abi::NetAddress own_address(std::uint32_t host, const abi::NetAddress& like) const;
  bool has_v6(std::uint32_t host) const { return interfaces_[host].ipv6_prefix != 0; }

 private:
  // The first interface of host n has index n.
  const std::vector<abi::NetworkInterface> interfaces_;
};

// Ephemeral ports of each host, given out in turn: `first` to 65535.
class EphemeralPorts {
 public:
  using InUse = std::function<bool(std::uint16_t port)>;
  explicit EphemeralPorts(std::uint16_t first) : first_(first) {}

  // nullopt: all ports are in use.
  std::optional<std::uint16_t> take(std::uint32_t host, const InUse& in_use);

 private:
  const std::uint16_t first_;
  std::map<std::uint32_t, std::uint16_t> next_;
};

}  // namespace rnicsim::sim

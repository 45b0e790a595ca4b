// Whose the addresses of the simulated out-of-band network are, and the ports that are free there.
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

  // The host that a program on `from` reaches there.
  std::optional<std::uint32_t> host_of(std::uint32_t from, const abi::NetAddress& address) const;
  // The host's own, of the kind of `like`, by which it reaches that: of the device in whose subnet it lies, else of the
  // first. That itself where it leads to the host only.
  abi::NetAddress own_address(std::uint32_t host, const abi::NetAddress& like) const;
  bool has_v6(std::uint32_t host) const { return interfaces_[host].ipv6_prefix != 0; }

 private:
  // A host's number is the index of its first one.
  const std::vector<abi::NetworkInterface> interfaces_;
};

// Ports that a host gives out, in turn.
class EphemeralPorts {
 public:
  using InUse = std::function<bool(std::uint16_t port)>;
  explicit EphemeralPorts(std::uint16_t first) : first_(first) {}  // to 65535

  // Nothing: all are in use.
  std::optional<std::uint16_t> take(std::uint32_t host, const InUse& in_use);

 private:
  const std::uint16_t first_;
  std::map<std::uint32_t, std::uint16_t> next_;
};

}  // namespace rnicsim::sim

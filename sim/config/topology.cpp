#include "sim/config/topology.h"

#include <algorithm>
#include <array>

namespace rnicsim::sim {

std::optional<std::uint32_t> Topology::find(std::string_view name) const {
  const auto found = std::ranges::find_if(hosts, [&](const auto& host) { return name == host.name; });
  if (found == hosts.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - hosts.begin());
}

abi::HostEntry default_host(std::uint32_t index, std::string_view name) {
  abi::HostEntry host;
  const auto number = static_cast<std::uint8_t>(index);
  name.substr(0, sizeof host.name - 1).copy(host.name, sizeof host.name - 1);
  std::ranges::copy(std::to_array<std::uint8_t>({10, 0, number, 1}), host.ipv4);
  host.ipv4_prefix = 16;
  std::ranges::copy(std::to_array<std::uint8_t>({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number, 0, 1}), host.ipv6);
  host.ipv6_prefix = 64;
  host.lid = static_cast<std::uint16_t>(index + 1);
  std::ranges::copy(std::to_array<std::uint8_t>({2, 0, 0, 0, number, 1}), host.mac);
  return host;
}

}  // namespace rnicsim::sim

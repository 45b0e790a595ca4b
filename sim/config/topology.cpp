#include "sim/config/topology.h"

#include <algorithm>
#include <array>

namespace rnicsim::sim {

std::optional<std::uint32_t> Topology::find(std::string_view name) const {
  const auto found = std::ranges::find_if(hosts, [&](const auto& host) { return name == host.name; });
  if (found == hosts.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - hosts.begin());
}

std::optional<std::uint32_t> Topology::find_node(std::string_view name) const {
  if (const auto host = find(name)) return host;
  const auto found = std::ranges::find(switches, name);
  if (found == switches.end()) return std::nullopt;
  return static_cast<std::uint32_t>(hosts.size() + static_cast<std::size_t>(found - switches.begin()));
}

std::string Topology::node_name(std::uint32_t node) const {
  return is_switch(node) ? switches[node - hosts.size()] : hosts[node].name;
}

Topology star_of(std::uint32_t hosts) {
  Topology star;
  star.switches.emplace_back("s0");
  for (std::uint32_t i = 0; i < hosts; ++i) {
    star.hosts.push_back(default_host(i, "h" + std::to_string(i)));
    star.cables.emplace_back(i, hosts);
  }
  return star;
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

#include "sim/config/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rnicsim::sim {

std::uint32_t Topology::hosts() const {
  return static_cast<std::uint32_t>(std::ranges::count(interfaces, 0, &abi::NetworkInterface::device));
}

std::optional<std::uint32_t> Topology::find_host(std::string_view name) const {
  const auto found = find(name);
  return found && interfaces[*found].device == 0 ? found : std::nullopt;
}

std::optional<std::uint32_t> Topology::find(std::string_view label) const {
  const auto found = std::ranges::find(interfaces, label, label_of);
  if (found == interfaces.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - interfaces.begin());
}

std::optional<std::uint32_t> Topology::find_node(std::string_view name) const {
  if (const auto interface = find(name)) return interface;
  const auto found = std::ranges::find(switches, name);
  if (found == switches.end()) return std::nullopt;
  return static_cast<std::uint32_t>(interfaces.size() + static_cast<std::size_t>(found - switches.begin()));
}

std::string Topology::node_name(std::uint32_t node) const {
  return is_switch(node) ? switches[node - interfaces.size()] : label_of(interfaces[node]);
}

Topology star_of(std::uint32_t hosts) {
  Topology star;
  star.switches.emplace_back("s0");
  for (std::uint32_t i = 0; i < hosts; ++i) {
    star.interfaces.push_back(default_interface(i, "h" + std::to_string(i)));
    star.cables.emplace_back(i, hosts);
  }
  return star;
}

std::string label_of(const abi::NetworkInterface& interface) {
  return interface.device == 0 ? interface.name : fmt::format("{}:{}", interface.name, interface.device);
}

abi::NetworkInterface default_interface(std::uint32_t host, std::string_view name, std::uint32_t device) {
  abi::NetworkInterface interface;
  const auto number = static_cast<std::uint8_t>(host);
  const auto rail = static_cast<std::uint8_t>(device);
  name.substr(0, sizeof interface.name - 1).copy(interface.name, sizeof interface.name - 1);
  std::ranges::copy(std::to_array<std::uint8_t>({10, rail, number, 1}), interface.ipv4);
  interface.ipv4_prefix = 16;
  std::ranges::copy(std::to_array<std::uint8_t>({0xfd, 0, 0, rail, 0, 0, 0, 0, 0, 0, 0, 0, 0, number, 0, 1}),
                    interface.ipv6);
  interface.ipv6_prefix = 64;
  interface.lid = static_cast<std::uint16_t>(device << 9 | (host + 1));
  std::ranges::copy(std::to_array<std::uint8_t>({2, 0, 0, rail, number, 1}), interface.mac);
  interface.host = static_cast<std::uint16_t>(host);
  interface.device = static_cast<std::uint16_t>(device);
  return interface;
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/config/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace rnicsim::sim {

std::uint32_t Topology::hosts() const {
  return static_cast<std::uint32_t>(std::ranges::count(interfaces, 0, &abi::NetworkInterface::device));
}

std::optional<std::uint32_t> Topology::find_host(std::string_view name) const {
  const auto found = find(name);
  return found && interfaces[*found].device == 0 ? found : std::nullopt;
}

std::optional<std::uint32_t> Topology::find(std::string_view label) const {
  // Compare the parts of the label, without building thousands of labels. A host's name has no colon.
  const auto colon = label.find(':');
  const auto name = label.substr(0, colon);
  const auto found = std::ranges::find_if(interfaces, [&](const abi::NetworkInterface& interface) {
    return name == interface.name && (interface.device == 0) == (colon == label.npos) &&
           (interface.device == 0 || label == label_of(interface));
  });
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

std::vector<std::string> Topology::port_names(std::size_t box) const {
  const auto node = static_cast<std::uint32_t>(interfaces.size() + box);
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  const auto add = [&](std::uint32_t peer) {
    const auto name = node_name(peer);
    const int number = ++seen[name];
    names.push_back(number == 1 ? name : fmt::format("{}#{}", name, number));
  };
  // A switch's ports are in the order of its cables.
  for (const auto& [from, to] : cables) {
    if (from == node) add(to);
    if (to == node) add(from);
  }
  return names;
}

std::string label_of(const abi::NetworkInterface& interface) {
  return interface.device == 0 ? interface.name : fmt::format("{}:{}", interface.name, interface.device);
}

namespace {

// Default LIDs are unique and at most 0xbfff, the last unicast LID.
std::uint16_t default_lid(std::uint32_t host, std::uint32_t device) {
  constexpr std::uint32_t kBits = 9, kFirst = (1 << kBits) - 1;  // hosts of the first block of each device
  return static_cast<std::uint16_t>(host < kFirst ? device << kBits | (host + 1)
                                                  : abi::kMaxDevices * (1 << kBits) +
                                                        (host - kFirst) * abi::kMaxDevices + device);
}

}  // namespace

abi::NetworkInterface default_interface(std::uint32_t host, std::string_view name, std::uint32_t device) {
  abi::NetworkInterface interface;
  const auto low = static_cast<std::uint8_t>(host), high = static_cast<std::uint8_t>(host >> 8);
  const auto rail = static_cast<std::uint8_t>(device);
  name.substr(0, sizeof interface.name - 1).copy(interface.name, sizeof interface.name - 1);
  std::ranges::copy(std::to_array<std::uint8_t>({10, rail, low, static_cast<std::uint8_t>(1 + high)}), interface.ipv4);
  interface.ipv4_prefix = 16;
  std::ranges::copy(std::to_array<std::uint8_t>({0xfd, 0, 0, rail, 0, 0, 0, 0, 0, 0, 0, 0, high, low, 0, 1}),
                    interface.ipv6);
  interface.ipv6_prefix = 64;
  interface.lid = default_lid(host, device);
  std::ranges::copy(std::to_array<std::uint8_t>({2, 0, high, rail, low, 1}), interface.mac);
  interface.host = static_cast<std::uint16_t>(host);
  interface.device = static_cast<std::uint16_t>(device);
  return interface;
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Hosts with their interfaces, switches, and the cables between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

struct Topology {
  // First the first interface of each host, in the order of the hosts, so that a host's number is the index of its
  // first interface. Then all further interfaces.
  std::vector<abi::NetworkInterface> interfaces;
  std::vector<std::string> switches;
  // Two node numbers for each cable. Nodes: the interfaces by index, then the switches.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;

  std::uint32_t hosts() const;
  std::optional<std::uint32_t> find_host(std::string_view name) const;
  // Index of the interface with the label. The label of a host's first interface is the host's name.
  std::optional<std::uint32_t> find(std::string_view label) const;
  std::optional<std::uint32_t> find_node(std::string_view name) const;
  std::string node_name(std::uint32_t node) const;
  // The names of a switch's ports: each port has the name of the node at the other end of the cable. With several
  // cables to one node, the second port is "spine0#2".
  std::vector<std::string> port_names(std::size_t box) const;
  bool is_switch(std::uint32_t node) const { return node >= interfaces.size(); }
  std::size_t nodes() const { return interfaces.size() + switches.size(); }
};

inline constexpr std::uint32_t kMaxHosts = 4096;
inline constexpr std::uint32_t kMaxSwitches = 1024;

// "h0"; the second device of h0 is "h0:1".
std::string label_of(const abi::NetworkInterface& interface);

// Default addresses of device D of host number N, with L and H the low and high byte of N: 10.D.L.(1+H)/16,
// fd00:D::N:1/64, 02:00:H:D:L:01.
abi::NetworkInterface default_interface(std::uint32_t host, std::string_view name, std::uint32_t device = 0);

}  // namespace rnicsim::sim

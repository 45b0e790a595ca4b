// Which hosts, with which interfaces, and which switches there are, and which cable joins which.
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
  // The first of each host, in the order of the hosts: a host's number is the index of its first. Then the others.
  std::vector<abi::NetworkInterface> interfaces;
  std::vector<std::string> switches;
  // By node: the interfaces by their index, then the switches.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;

  std::uint32_t hosts() const;
  std::optional<std::uint32_t> find_host(std::string_view name) const;
  // By its label: a host's name is that of its first interface.
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

// "h0"; of its second device "h0:1".
std::string label_of(const abi::NetworkInterface& interface);

// An interface where the file says no more than whose it is: of device D of host number N, whose low byte is L and
// whose high one H: 10.D.L.1+H/16, fd00:D::N:1/64, 02:00:H:D:L:01.
abi::NetworkInterface default_interface(std::uint32_t host, std::string_view name, std::uint32_t device = 0);

}  // namespace rnicsim::sim

// Which hosts and switches there are, and which cable joins which.
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
  std::vector<abi::HostEntry> hosts;
  std::vector<std::string> switches;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;  // by node: the hosts by their index, then the switches

  std::optional<std::uint32_t> find(std::string_view name) const;  // a host
  std::optional<std::uint32_t> find_node(std::string_view name) const;
  std::string node_name(std::uint32_t node) const;
  bool is_switch(std::uint32_t node) const { return node >= hosts.size(); }
  std::size_t nodes() const { return hosts.size() + switches.size(); }
};

// h0, h1 ... around one switch.
Topology star_of(std::uint32_t hosts);

// The host that is number `index`, where the file says no more than its name: 10.0.index.1/16, fd00::index:1/64,
// 02:00:00:00:index:01.
abi::HostEntry default_host(std::uint32_t index, std::string_view name);

}  // namespace rnicsim::sim

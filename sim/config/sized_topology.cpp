// SPDX-License-Identifier: Apache-2.0
#include "sim/config/sized_topology.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

// Numbers of "4,2,8"; empty: not exactly `count` numbers.
std::vector<std::uint64_t> sizes_of(std::string_view text, std::size_t count) {
  std::vector<std::uint64_t> sizes;
  for (const char* at = text.data(); sizes.size() < count; ++at) {
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), size);
    if (error != std::errc{}) return {};
    sizes.push_back(size);
    at = end;
    if (at == text.data() + text.size()) return sizes.size() == count ? sizes : std::vector<std::uint64_t>{};
    if (*at != ',') return {};
  }
  return {};
}

// Builds nodes level by level, hosts first.
class Builder {
 public:
  explicit Builder(std::uint64_t hosts) {
    for (std::uint32_t i = 0; i < hosts; ++i)
      topology_.interfaces.push_back(default_interface(i, fmt::format("h{}", i)));
  }
  // Returns the node number of the first new switch.
  std::uint32_t add_switches(std::string_view name, std::uint64_t count) {
    const auto first = static_cast<std::uint32_t>(topology_.nodes());
    for (std::uint64_t i = 0; i < count; ++i) topology_.switches.push_back(fmt::format("{}{}", name, i));
    return first;
  }
  void join(std::uint64_t from, std::uint64_t to) {
    topology_.cables.emplace_back(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
  }
  Topology take() { return std::move(topology_); }

 private:
  Topology topology_;
};

Topology star(std::uint64_t hosts) {
  Builder made(hosts);
  const auto center = made.add_switches("s", 1);
  for (std::uint64_t i = 0; i < hosts; ++i) made.join(i, center);
  return made.take();
}

Topology leaf_spine(std::uint64_t leaves, std::uint64_t spines, std::uint64_t hosts) {
  Builder made(leaves * hosts);
  const auto leaf = made.add_switches("leaf", leaves);
  const auto spine = made.add_switches("spine", spines);
  for (std::uint64_t i = 0; i < leaves * hosts; ++i) made.join(i, leaf + i / hosts);
  for (std::uint64_t i = 0; i < leaves; ++i)
    for (std::uint64_t j = 0; j < spines; ++j) made.join(leaf + i, spine + j);
  return made.take();
}

Topology fat_tree(std::uint64_t ports) {
  const std::uint64_t half = ports / 2;
  Builder made(ports * half * half);
  const auto edge = made.add_switches("edge", ports * half);
  const auto aggregation = made.add_switches("agg", ports * half);
  const auto core = made.add_switches("core", half * half);
  for (std::uint64_t i = 0; i < ports * half * half; ++i) made.join(i, edge + i / half);
  for (std::uint64_t pod = 0; pod < ports; ++pod)
    for (std::uint64_t i = 0; i < half; ++i)
      for (std::uint64_t j = 0; j < half; ++j) made.join(edge + pod * half + i, aggregation + pod * half + j);
  for (std::uint64_t i = 0; i < ports * half; ++i)
    for (std::uint64_t j = 0; j < half; ++j) made.join(aggregation + i, core + i % half * half + j);
  return made.take();
}

void require(bool good, std::string_view name, const std::string& needed) {
  if (!good) throw ConfigError(fmt::format("topology {}: {} is needed", shown(name), needed));
}

}  // namespace

std::optional<Topology> sized_topology(std::string_view name) {
  const auto colon = name.find(':');
  if (colon == name.npos) return std::nullopt;
  const auto kind = name.substr(0, colon), size = name.substr(colon + 1);
  if (kind == "star") {
    const auto sizes = sizes_of(size, 1);
    require(!sizes.empty() && sizes[0] >= 2 && sizes[0] <= kMaxHosts, name,
            fmt::format("star:2 .. star:{}", kMaxHosts));
    return star(sizes[0]);
  }
  if (kind == "leaf-spine") {
    const auto sizes = sizes_of(size, 3);
    require(!sizes.empty() && sizes[0] >= 1 && sizes[1] >= 1 && sizes[2] >= 1 && sizes[0] * sizes[2] >= 2 &&
                sizes[0] * sizes[2] <= kMaxHosts && sizes[0] + sizes[1] <= kMaxSwitches,
            name,
            fmt::format("leaf-spine:LEAVES,SPINES,HOSTS-A-LEAF with 2 .. {} hosts and up to {} switches", kMaxHosts,
                        kMaxSwitches));
    return leaf_spine(sizes[0], sizes[1], sizes[2]);
  }
  if (kind == "fat-tree") {
    constexpr std::uint64_t kMostPorts = 24;  // 3,456 hosts and 720 switches
    const auto sizes = sizes_of(size, 1);
    require(!sizes.empty() && sizes[0] >= 2 && sizes[0] <= kMostPorts && sizes[0] % 2 == 0, name,
            fmt::format("fat-tree:K with an even K of 2 .. {}", kMostPorts));
    return fat_tree(sizes[0]);
  }
  return std::nullopt;
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/warnings/round_trips.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "model/nic/engine/congestion_params.h"
#include "sim/config/config.h"

namespace rnicsim::sim {
namespace {

// A NIC, and the time between it and a node.
struct FarNic {
  std::uint32_t interface = 0;
  Duration time{};
};

// One-way times between nodes without any frame on the way: cables and switches on a path with the fewest cables.
class EmptyFabric {
 public:
  explicit EmptyFabric(const Config& config) : config_(config), neighbours_(config.topology.nodes()) {
    const auto& cables = config.topology.cables;
    for (std::size_t i = 0; i < cables.size(); ++i) {
      const auto latency = config.link_of(i).latency;
      neighbours_[cables[i].first].push_back({cables[i].second, latency});
      neighbours_[cables[i].second].push_back({cables[i].first, latency});
    }
  }

  // The NIC with the longest time; nullopt: no other NIC can be reached.
  std::optional<FarNic> farthest_from(std::uint32_t interface) {
    std::optional<FarNic> farthest;
    for (const auto& [neighbour, latency] : neighbours_[interface])
      for (const auto& far : from(neighbour))
        if (far && far->interface != interface && (!farthest || latency + far->time > farthest->time))
          farthest = FarNic{far->interface, latency + far->time};
    return farthest;
  }

 private:
  struct Neighbour {
    std::uint32_t node;
    Duration latency;
  };
  // Two NICs, because the caller may be one of them.
  using Farthest = std::array<std::optional<FarNic>, 2>;

  Duration crossing(std::uint32_t node) const {
    const auto& topology = config_.topology;
    return topology.is_switch(node) ? config_.switch_of(node - topology.interfaces.size()).latency : Duration{};
  }

  const Farthest& from(std::uint32_t start) {
    const auto [place, is_new] = known_.try_emplace(start);
    if (!is_new) return place->second;
    auto& farthest = place->second;
    constexpr Duration kUnreached{std::numeric_limits<std::int64_t>::max()};
    std::vector<std::uint32_t> hops(neighbours_.size(), ~0u);
    std::vector<Duration> times(neighbours_.size(), kUnreached);
    hops[start] = 0;
    times[start] = crossing(start);
    for (std::deque<std::uint32_t> next{start}; !next.empty(); next.pop_front()) {
      const auto node = next.front();
      if (!config_.topology.is_switch(node)) {
        keep(farthest, {node, times[node]});
        continue;  // NICs forward no frames
      }
      for (const auto& [neighbour, latency] : neighbours_[node]) {
        if (hops[neighbour] == ~0u) next.push_back(neighbour);
        if (hops[neighbour] <= hops[node]) continue;
        hops[neighbour] = hops[node] + 1;
        times[neighbour] = std::min(times[neighbour], times[node] + latency + crossing(neighbour));
      }
    }
    return farthest;
  }
  static void keep(Farthest& farthest, FarNic nic) {
    auto& [first, second] = farthest;
    if (!first || nic.time > first->time)
      second = std::exchange(first, nic);
    else if (!second || nic.time > second->time)
      second = nic;
  }

  const Config& config_;
  std::vector<std::vector<Neighbour>> neighbours_;  // by node
  std::map<std::uint32_t, Farthest> known_;         // by the node next to a NIC
};

struct TooLong {
  std::string from;
  std::string to;
  Duration round_trip{};
};

}  // namespace

std::vector<std::string> round_trip_warnings(const Config& config) {
  EmptyFabric fabric(config);
  std::map<std::pair<std::string, Duration>, TooLong> found;  // by the parameters and their limit
  for (std::uint32_t i = 0; i < config.topology.interfaces.size(); ++i) {
    const auto nic = config.nic_of(i);
    const auto limit = nic.congestion.round_trip_limit(nic.port.rate);
    if (!limit) continue;
    const auto far = fabric.farthest_from(i);
    if (!far) continue;
    // The packet in the receiver's pipeline, the acknowledgement in the receiver's and in the sender's.
    const auto peer = config.nic_of(far->interface);
    const auto round_trip = 2 * far->time + peer.rx.latency + peer.tx.latency + nic.rx.latency;
    if (round_trip <= limit->most) continue;
    auto& longest = found[{limit->parameters, limit->most}];
    if (round_trip > longest.round_trip)
      longest = {config.topology.node_name(i), config.topology.node_name(far->interface), round_trip};
  }
  std::vector<std::string> warnings;
  for (const auto& [limit, path] : found)
    warnings.push_back(
        fmt::format("{} is {}, but a round trip from {} to {} and back takes at least {} in the empty fabric: a queue "
                    "pair cannot use the whole line",
                    limit.first, to_string(limit.second), path.from, path.to, to_string(path.round_trip)));
  return warnings;
}

}  // namespace rnicsim::sim

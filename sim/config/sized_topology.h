// SPDX-License-Identifier: Apache-2.0
// Topologies by name and size: "star:16", "leaf-spine:4,2,8", "fat-tree:8". Their hosts are h0, h1 ...
#pragma once

#include <optional>
#include <string_view>

#include "sim/config/topology.h"

namespace rnicsim::sim {

inline constexpr std::string_view kSizedTopologies = "star:N, leaf-spine:LEAVES,SPINES,HOSTS, fat-tree:K";

// star:N has N hosts around the switch s0. leaf-spine:L,S,H has L switches leaf0 ..., each with H hosts and a cable to
// each of the S switches spine0 ... fat-tree:K has switches of K ports, K even: K pods with K/2 edge switches (edge0
// ...) and K/2 aggregation switches (agg0 ...), K/2 hosts at each edge switch, and K*K/4 switches core0 ... above.
// nullopt: the name has another form. ConfigError: the size is not possible.
std::optional<Topology> sized_topology(std::string_view name);

}  // namespace rnicsim::sim

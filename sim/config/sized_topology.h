// Topologies by name and size: "star:16", "leaf-spine:4,2,8", "fat-tree:8". Hosts are h0, h1 ...
#pragma once

#include <optional>
#include <string_view>

#include "sim/config/topology.h"

namespace rnicsim::sim {

inline constexpr std::string_view kSizedTopologies = "star:N, leaf-spine:LEAVES,SPINES,HOSTS, fat-tree:K";

// star:N: N hosts around the switch s0. leaf-spine:L,S,H: L switches leaf0 ..., with H hosts each and a cable to each
// of S switches spine0 ...
// fat-tree:K of switches with K ports, K even: K pods with K/2 edge and K/2 aggregation switches (edge0 ..., agg0 ...),
// K/2 hosts at each edge switch, and K*K/4 switches core0 ... above.
// nullopt: not a name of this form. ConfigError: not a size that there is.
std::optional<Topology> sized_topology(std::string_view name);

}  // namespace rnicsim::sim

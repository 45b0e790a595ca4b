// SPDX-License-Identifier: Apache-2.0
// The limit of a run: how busy each resource was, and how much work waited for it. Resources are the units and links of
// NICs, the agents' CPUs, and the ports of switches, by priority if a priority is paused or shares its port.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/bench/results/results.h"
#include "sim/results/json.h"

namespace rnicsim::sim::bench {

struct ResourceUse {
  std::string resource;          // "nic.port.tx"; "flow[0].from.cpu"; for a switch "port.h0.tx", "port.h0.tx.p3"
  std::string host;              // name of the host or switch
  double use = 0;                // share, of 1; use of the busiest unit if work is bound to a unit
  std::optional<double> queue;   // average number of waiting entries
  std::optional<double> growth;  // queue in the second half of the time minus queue in the first half
  double paused = 0;             // share, of 1, of the time for which a priority of a switch's port was paused
  std::string paused_by{};       // the device that paused the priority
  std::uint64_t discards = 0;    // frames dropped at a switch's port for lack of room

  // Share, of 1, of the time in which the resource could do no more.
  double taken() const { return use + paused; }
};

// Busiest first, without resources that were never busy.
std::vector<ResourceUse> resource_uses(const BenchResult& result);

// The resource that limits the run: the busiest one, if it is used up; for slots, the link that they are held for, if
// that is used up as well; else a port of a switch that is used up together with the time for which it is paused.
// Otherwise `resource` is "latency" (agents wait for completions with a full window) or "pace" (the workload sets the
// rate).
ResourceUse limit_of(const BenchResult& result, const std::vector<ResourceUse>& uses);

std::string limit_text(const ResourceUse& limit);

Json use_json(const ResourceUse& use);

}  // namespace rnicsim::sim::bench

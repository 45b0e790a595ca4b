// What limits a run: how busy each of its resources was, and what waited for it. Resources are the units and links of
// NICs, the agents' CPUs, and the ports of switches, by priority where one is paused or shares its port with others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/bench/results.h"
#include "sim/json.h"

namespace rnicsim::sim::bench {

struct ResourceUse {
  std::string resource;  // "nic.port.tx"; "flow[0].from.cpu"; of a switch "port.h0.tx", "port.h0.tx.p3"
  std::string host;      // or the switch
  double use = 0;                // of 1; of its busiest unit, where work cannot choose
  std::optional<double> queue;   // how many waited for it, on average
  std::optional<double> growth;  // of the queue: in the second half of the time, less that in the first
  double paused = 0;             // of 1: how long a priority of a switch's port was paused
  std::string paused_by{};       // the device that paused the priority
  std::uint64_t discards = 0;    // frames that a switch's port had no room for

  // The part of the time, of 1, in which the resource could do no more.
  double taken() const { return use + paused; }
};

// The busiest first; what was never busy is left out.
std::vector<ResourceUse> resource_uses(const BenchResult& result);

// The busiest, if it is used up, or else a port of a switch that is, together with the time for which it is paused; of
// slots, the link that they are held for, if that is, too. Else nothing of these:
// `resource` is "latency" where agents wait for completions with their window full, "pace" where they are told how fast
// to post.
ResourceUse limit_of(const BenchResult& result, const std::vector<ResourceUse>& uses);

std::string limit_text(const ResourceUse& limit);

Json use_json(const ResourceUse& use);

}  // namespace rnicsim::sim::bench

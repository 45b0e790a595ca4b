// SPDX-License-Identifier: Apache-2.0
// The agents of a workload and their connections, checked against the capabilities of NICs and topology.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/bench/workload.h"
#include "sim/config/config.h"

namespace rnicsim::sim::bench {

// One end of a connection: a QP of an agent.
struct PlannedQp {
  std::uint32_t agent;  // agent of the other end
  std::uint32_t qp;     // index among that agent's QPs
};

// A thread of a flow on a host, at either end.
struct PlannedAgent {
  std::uint32_t flow;
  std::uint32_t host;
  std::uint32_t thread;  // for a receiver of raw packets, its queue
  bool sends;
  std::uint32_t place = 0;        // index among the flow's senders, or among its receivers
  std::vector<PlannedQp> qps;     // empty for receivers of raw packets
  ByteCount region{};             // size of each memory region
  std::uint32_t lender = ~0u;     // index of the agent that owns the regions; may be the agent itself
  std::uint32_t first_place = 0;  // index in the regions of the place of the agent's first QP
};

struct Plan {
  std::vector<PlannedAgent> agents;  // senders of a flow before its receivers
  std::uint32_t hosts = 0;           // number of hosts of the topology
};

// Name of the topology for load_config(): a star has as many hosts as the flows need.
std::string topology_of(const Workload& workload);
// True: the agent has a context of its own; else agents of the same flow and host share one.
bool has_own_context(const PlannedAgent& agent, const Flow& flow);
// True: the agent posts work requests, at either end.
bool posts_wrs(const PlannedAgent& agent, const Flow& flow);
// Distance of the places in a region, in bytes.
std::uint64_t step_of(const Flow& flow);
// tracks_of(): sequences that an agent has under way at once. track_bytes(): bytes of its memory for each of them.
std::uint64_t tracks_of(const PlannedAgent& agent, const Flow& flow);
std::uint64_t track_bytes(const Flow& flow);
// Bytes of a frame's slot in a region of raw packets.
std::uint64_t frame_slot(const Flow& flow);
// Offset in the region of a ping-pong's agent at which the peer's writes arrive; the agent's own data are before it.
std::uint64_t ping_pong_landing(const Flow& flow);
// Completes the flows with values of NIC or topology that the file leaves out. ConfigError, with the key's path.
Plan make_plan(Workload& workload, const Config& config);

}  // namespace rnicsim::sim::bench

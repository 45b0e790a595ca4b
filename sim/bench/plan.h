// Who talks to whom: the agents of a workload and their connections, checked against what NIC and topology can do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/bench/workload.h"
#include "sim/config/config.h"

namespace rnicsim::sim::bench {

// One end of a connection: a QP of an agent, by numbers.
struct PlannedQp {
  std::uint32_t agent;  // the other end's
  std::uint32_t qp;     // its place among that agent's QPs
};

// A thread of a flow on a host, at either end.
struct PlannedAgent {
  std::uint32_t flow;
  std::uint32_t host;
  std::uint32_t thread;  // of those that receive raw packets its queue
  bool sends;
  std::uint32_t place = 0;  // among the flow's senders, or among its receivers
  std::vector<PlannedQp> qps;  // none of those that receive raw packets
  ByteCount region{};  // of each of its memory regions
  std::uint32_t lender = ~0u;     // the agent whose regions these are; or itself
  std::uint32_t first_place = 0;  // of its first QP, in them
};

struct Plan {
  std::vector<PlannedAgent> agents;  // a flow's senders before its receivers
  std::uint32_t hosts = 0;           // of the topology
};

// The topology's name for load_config(): a star is as large as the flows need.
std::string topology_of(const Workload& workload);
// Whether it opens the device for itself, not with others of its flow and host.
bool has_own_context(const PlannedAgent& agent, const Flow& flow);
// Whether it posts work requests, at either end.
bool posts_wrs(const PlannedAgent& agent, const Flow& flow);
// How far apart the places of a region are.
std::uint64_t step_of(const Flow& flow);
// How many sequences one that posts them has under way, and what each takes of its memory.
std::uint64_t tracks_of(const PlannedAgent& agent, const Flow& flow);
std::uint64_t track_bytes(const Flow& flow);
// A frame's place in a region of raw packets.
std::uint64_t frame_slot(const Flow& flow);
// Where in its region an agent of a ping-pong finds the other's writes; its own stand before it.
std::uint64_t ping_pong_landing(const Flow& flow);
// Puts what the file left to NIC or topology into the flows. ConfigError, with the key's path.
Plan make_plan(Workload& workload, const Config& config);

}  // namespace rnicsim::sim::bench

// What a process has seen of a run, for the one that prints it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/byte_stream.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/measured.h"

namespace rnicsim::sim::bench {

// Of the hosts (and their agents) and switches that are `here`.
struct Share {
  std::function<bool(std::uint32_t)> host, agent, box;
};

void put(ByteWriter& out, const Snapshot& snapshot, const Share& share);
// Into what stands there for them.
void take(ByteReader& in, Snapshot& snapshot);
void put(ByteWriter& out, const FlowState& flow);
// Added to what this process has seen of it.
void take(ByteReader& in, FlowState& flow);

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
// Serialized results of one process, for the process that prints them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/byte_stream.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/results/measured.h"

namespace rnicsim::sim::bench {

// Hosts (and their agents) and switches that the process simulates.
struct Share {
  std::function<bool(std::uint32_t)> host, agent, box;
};

void put(ByteWriter& out, const Snapshot& snapshot, const Share& share);
// Replaces the entries of these hosts, agents and switches; adds the sums.
void take(ByteReader& in, Snapshot& snapshot);
void put(ByteWriter& out, const FlowState& flow);
// Adds to the results of this process.
void take(ByteReader& in, FlowState& flow);

}  // namespace rnicsim::sim::bench

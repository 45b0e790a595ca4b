// SPDX-License-Identifier: Apache-2.0
// Hash of a frame's flow to choose among several paths; frames of one flow keep their path and their order.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/frame.h"

namespace rnicsim::fabric {

// Fields that identify a flow. IP: both addresses and the protocol; UDP and TCP also both ports. Other frames: MAC
// addresses and EtherType.
using FlowKey = std::array<std::uint64_t, 5>;
FlowKey flow_of(const Frame& frame);
// The same, and the destination queue pair of a RoCEv2 packet (UDP port 4791).
FlowKey flow_and_queue_pair_of(const Frame& frame);

// Chooses one of `ways` paths (not 0). Two seeds choose independently: each layer of a tree needs its own seed, because
// otherwise the second layer would use only some of its paths.
std::uint32_t choose_way(const FlowKey& flow, std::uint64_t seed, std::uint32_t ways);

}  // namespace rnicsim::fabric

// Which of several ways a frame takes: a hash of its flow, so that a flow keeps its way and its order.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/frame.h"

namespace rnicsim::fabric {

// What says which flow a frame is of: of IP both addresses, the protocol, and of UDP and TCP both ports; of another
// frame the MAC addresses and the type.
using FlowKey = std::array<std::uint64_t, 5>;
FlowKey flow_of(const Frame& frame);
// And of a RoCE v2 packet (UDP port 4791) the destination queue pair of its BTH.
FlowKey flow_and_queue_pair_of(const Frame& frame);

// One of `ways` (not 0). Two seeds choose independently of each other: the layers of a tree need one each, or the
// second would find only the flows that the first sent its way.
std::uint32_t choose_way(const FlowKey& flow, std::uint64_t seed, std::uint32_t ways);

}  // namespace rnicsim::fabric

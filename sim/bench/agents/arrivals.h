// SPDX-License-Identifier: Apache-2.0
// Counts payload as it arrives and is accepted, flow by flow. A message that began before the measured time, or has not
// ended in it, counts with its part. Payload counts when the NIC takes it, not when memory has it: payload that waited
// for memory could come faster than the line.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/bench/flow_state.h"
#include "sim/system.h"

namespace rnicsim::sim::bench {

class Arrivals {
 public:
  // `flows` outlives this object. The NICs call this object, so it must live while they process packets.
  Arrivals(System& system, std::vector<FlowState>& flows);
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // Payload that arrives for this QP counts for the flow, without the first `header` bytes of each packet.
  void add(std::uint32_t host, std::uint32_t qpn, std::uint32_t flow, std::uint32_t header);
  // The CQEs of this QP, for which add() was called before, are receives: they count for the flow's backlog.
  void receives(std::uint32_t host, std::uint32_t qpn);

 private:
  struct Owner {
    FlowState* flow = nullptr;
    std::uint32_t header = 0;
    bool receives = false;
  };

  void completed(std::uint32_t host, std::uint32_t qpn);
  void count(std::uint32_t host, std::uint32_t qpn, std::uint32_t bytes);

  std::vector<FlowState>& flows_;
  std::vector<std::vector<Owner>> owners_;  // by host and QP number
};

}  // namespace rnicsim::sim::bench

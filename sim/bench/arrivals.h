// Payload as it arrives and is accepted, flow by flow: a message that ends within the measured time but began before it
// counts with its part, and so does one that has not ended yet. How long memory takes for it then does not count: what
// had to wait there could come faster than the line.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/bench/flow_state.h"
#include "sim/system.h"

namespace rnicsim::sim::bench {

class Arrivals {
 public:
  // `flows` and the system's NICs outlive it, or nothing happens on them any more.
  Arrivals(System& system, std::vector<FlowState>& flows);
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // What arrives for this QP belongs to the flow, without the first `header` bytes of each packet.
  void add(std::uint32_t host, std::uint32_t qpn, std::uint32_t flow, std::uint32_t header);
  // The CQEs of this QP, which was added before, are receives: they count for the flow's backlog.
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

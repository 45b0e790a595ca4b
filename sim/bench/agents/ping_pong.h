// SPDX-License-Identifier: Apache-2.0
// Two threads that write to each other in turn, and poll their memory for the peer's write, as ib_write_lat does. A
// sample is half a round trip, from post to post.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/host/cpu_port.h"
#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class PingPong : public Agent {
 public:
  PingPong(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state, Control& control,
           host::CpuPort& port, std::string name);

  void run() override;
  std::string describe() const override;

 private:
  bool begins() const { return station_.plan().sends; }
  bool goes_on();
  void post();
  void await_completion();
  void await_answer();
  Duration look_at_clock();
  void count(Duration round_trip);

  Station& station_;
  const Station& peer_;
  const Flow& flow_;
  FlowState& state_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  const std::uint64_t bytes_;
  const std::uint64_t landing_;  // offset in a region at which the peer's writes arrive
  std::uint32_t turn_ = 0;       // the last byte of each write has this number
};

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
// A thread that repeatedly makes and destroys an object: a memory region, or a connected queue pair.
#pragma once

#include <string>

#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/pacer.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Churn : public Agent {
 public:
  Churn(Station& station, FlowState& state, Control& control, host::CpuPort& port, std::string name);

  void run() override;
  std::string describe() const override;

 private:
  void make_and_destroy();
  void register_memory();

  Station& station_;
  FlowState& state_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  Pacer pacer_;
};

}  // namespace rnicsim::sim::bench

// A thread that registers memory and deregisters it, again and again.
#pragma once

#include <string>

#include "sim/bench/agent.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/pacer.h"
#include "sim/bench/station.h"

namespace rnicsim::sim::bench {

class Registrar : public Agent {
 public:
  Registrar(Station& station, FlowState& state, Control& control, host::CpuPort& port, std::string name);

  void run() override;
  std::string describe() const override;

 private:
  void register_once();

  Station& station_;
  FlowState& state_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  Pacer pacer_;
};

}  // namespace rnicsim::sim::bench

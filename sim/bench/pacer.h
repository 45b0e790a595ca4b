// When an agent whose flow has a pace may begin the next operation.
#pragma once

#include "model/host/cpu_port.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Pacer {
 public:
  // Of one of the flow's threads. All outlive it.
  Pacer(const Flow& flow, const FlowState& state, const Control& control, host::CpuPort& port);

  void start() { next_ps_ = static_cast<double>(now().ps); }
  // So many at once. With nothing to poll for the thread sleeps until then; else a poll of an empty queue may make it a
  // little late.
  bool may_begin(std::uint32_t operations, bool polls) {
    return between_ps_ <= 0 || may_begin_at(port_.thread_time(), operations, polls);
  }

 private:
  bool may_begin_at(Duration at, std::uint32_t operations, bool polls);

  const FlowState& state_;
  const Control& control_;
  host::CpuPort& port_;
  double between_ps_;    // 0: no pace
  double next_ps_ = 0;
};

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
// Decides when an agent of a flow with a pace may begin the next operation.
#pragma once

#include "model/host/cpu_port.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Pacer {
 public:
  // For one thread of the flow. The arguments outlive this object.
  Pacer(const Flow& flow, const FlowState& state, const Control& control, host::CpuPort& port);

  void start() { next_ps_ = static_cast<double>(now().ps); }
  // `operations`: number begun at once. Without completions to poll for, the thread sleeps until then. Otherwise the
  // caller polls, and a poll of an empty queue may make the operation a little late.
  bool may_begin(std::uint32_t operations, bool polls) {
    return between_ps_ <= 0 || may_begin_at(port_.thread_time(), operations, polls);
  }

 private:
  bool may_begin_at(Duration at, std::uint32_t operations, bool polls);

  const FlowState& state_;
  const Control& control_;
  host::CpuPort& port_;
  double between_ps_;  // 0: no pace
  double next_ps_ = 0;
};

}  // namespace rnicsim::sim::bench

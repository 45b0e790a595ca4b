// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/pacer.h"

#include <algorithm>

namespace rnicsim::sim::bench {
namespace {

constexpr double kPsPerSecond = 1e12;

// Mean time between two operations of one thread of the flow, in ps; 0: no pace.
double time_between(const Flow& flow, std::uint32_t senders) {
  if (!flow.pace) return 0;
  const double rate = flow.pace->operations_per_second > 0
                          ? flow.pace->operations_per_second
                          : static_cast<double>(flow.pace->rate.bits_per_second) / (8 * flow.mean_bytes());
  return kPsPerSecond / rate * senders;
}

}  // namespace

Pacer::Pacer(const Flow& flow, const FlowState& state, const Control& control, host::CpuPort& port)
    : state_(state), control_(control), port_(port), between_ps_(time_between(flow, state.senders)) {}

bool Pacer::may_begin_at(Duration at, std::uint32_t operations, bool polls) {
  const Duration next{static_cast<std::int64_t>(next_ps_)};
  if (at < next) {
    if (polls) return false;
    port_.wait_until(std::min(next, state_.end));
    if (control_.stopping || state_.stopped || now() >= state_.end) return false;
  }
  next_ps_ += between_ps_ * operations;
  return true;
}

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
// rnicsim trace follow: prints all events of one WQE: doorbell, fetch, packets, acknowledgement and CQE.
#pragma once

#include <cstdint>
#include <string>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

struct FollowedWqe {
  std::string host;
  std::uint32_t qp = 0;
  std::uint64_t number = 0;  // position among the WQEs that the engine took from the QP's send queue, from 0
};

// One line for each event, with the time since the first event. ConfigError: the trace has no such WQE.
std::string follow_wqe(TraceSource& trace, const FollowedWqe& followed);

}  // namespace rnicsim::sim

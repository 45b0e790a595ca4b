// SPDX-License-Identifier: Apache-2.0
// rnicsim trace stat: counts of events; for each queue pair rates, latencies and retransmissions.
#pragma once

#include <string>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// Reads the whole trace and returns the table as text.
std::string trace_statistics(TraceSource& trace);

}  // namespace rnicsim::sim

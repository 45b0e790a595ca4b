// rnicsim trace stat: counts of events, and of each queue pair its rates, latencies and retransmissions.
#pragma once

#include <string>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// Reads the trace; the table as text.
std::string trace_statistics(TraceSource& trace);

}  // namespace rnicsim::sim

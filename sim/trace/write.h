// rnicsim trace cut, merge: traces made of traces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// Writes the events that the source takes, with its header, to `path`. ConfigError, TraceError: the file stays as it
// was.
void cut_trace(TraceSource& trace, const std::string& path);
// Writes the events of all traces in the order of time; of one time in the order of the traces. The traces have
// different hosts, and the same seed and configuration. ConfigError, TraceError: the file stays as it was.
void merge_traces(std::vector<std::unique_ptr<TraceSource>>& traces, const std::string& path);

}  // namespace rnicsim::sim

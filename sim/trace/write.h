// SPDX-License-Identifier: Apache-2.0
// rnicsim trace cut, merge: make a trace from parts of traces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// Writes the events of the source, with its header, to `path`. ConfigError, TraceError: an existing file at `path`
// stays unchanged.
void cut_trace(TraceSource& trace, const std::string& path);
// Merges the events of all traces in the order of time; at equal times in the order of the traces. The traces must have
// different hosts, and the same seed and configuration. ConfigError, TraceError: an existing file at `path` stays
// unchanged.
void merge_traces(std::vector<std::unique_ptr<TraceSource>>& traces, const std::string& path);

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim trace export --format fst: state of queue pairs as waves, for GTKWave.
#pragma once

#include <string>

#include "sim/trace/event_filter.h"

namespace rnicsim::sim {

// Reads the trace twice, because a file of waves declares its signals first. Makes a scope for each host, and in it a
// scope for each queue pair that passes the filter, with the signals of docs/trace.md. ConfigError: this build has no
// writer of waves, or `path` cannot be written. An existing file at `path` is replaced only on success. TraceError: the
// trace is not valid.
void export_waves(const std::string& trace, const FilterOptions& filter, const std::string& path);

}  // namespace rnicsim::sim

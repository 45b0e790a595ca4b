// rnicsim trace export --format fst: queue pairs as waves, for GTKWave.
#pragma once

#include <string>

#include "sim/trace/event_filter.h"

namespace rnicsim::sim {

// Reads the trace twice: a file of waves names its signals first. A scope for each host, in it a scope for each queue
// pair of the filter, with the signals of docs/trace.md. ConfigError: this build has no writer of waves, or
// `path` cannot be written; the file stays as it was. TraceError: as well.
void export_waves(const std::string& trace, const FilterOptions& filter, const std::string& path);

}  // namespace rnicsim::sim

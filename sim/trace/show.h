// SPDX-License-Identifier: Apache-2.0
// rnicsim trace show: events as lines, or chosen fields as columns.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

struct ShowOptions {
  std::vector<std::string> columns;   // time, host, kind, or names of fields; empty: whole lines
  std::optional<std::uint64_t> most;  // limit of printed lines
};

// ConfigError: no kind has the field of a column. False: a write to `file` failed.
bool show_trace(TraceSource& trace, const ShowOptions& options, std::FILE* file);

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim trace export: writes events for other programs.
#pragma once

#include <cstdio>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

enum class TraceFormat { jsonl, csv, perfetto, fst, pcapng };

// ConfigError: a trace lacks the data for the format (pcapng needs frames).
void check_exportable(TraceFormat format);

// jsonl: one JSON object for each event, with the members time_ps, host, kind and the kind's fields, without fields
// that are 0 and not shown by `trace show`. Named values are texts, all others numbers. csv: the same as columns, one
// for each field of any kind. perfetto: timeline.h. fst: not here; use export_waves(). False: a write to `file` failed.
// ConfigError: as check_exportable().
bool export_trace(TraceSource& trace, TraceFormat format, std::FILE* file);

}  // namespace rnicsim::sim

// rnicsim trace export: events for other programs.
#pragma once

#include <cstdio>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

enum class TraceFormat { jsonl, csv, perfetto, fst, pcapng };

// ConfigError: a trace does not hold what the format is made of: no frames for pcapng.
void check_exportable(TraceFormat format);

// JSON lines: an object an event; members time_ps, host, kind and the kind's fields, without those that are 0 and that
// `show` leaves out. Values with a name are texts, all others are numbers. CSV: the same as columns, a column for each
// field of any kind.
// perfetto: timeline.h. fst: none of these, export_waves() has it.
// False: `file` took not everything.
// ConfigError: as check_exportable().
bool export_trace(TraceSource& trace, TraceFormat format, std::FILE* file);

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim trace export --format perfetto: a timeline that ui.perfetto.dev opens.
#pragma once

#include <cstdio>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// Tracks: a process for each host, with a thread for each queue pair and a thread for the device. A request is a slice
// from the time the engine takes the WQE to the CQE; the number of outstanding requests is a counter; each event is an
// instant with its fields. False: a write to `file` failed. TraceError: the trace is damaged; the file holds a valid
// timeline up to the damage.
bool export_timeline(TraceSource& trace, std::FILE* file);

}  // namespace rnicsim::sim

// rnicsim trace export --format perfetto: a timeline that ui.perfetto.dev opens.
#pragma once

#include <cstdio>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim {

// A process for each host, a thread for each of its queue pairs and one for its device. Requests, from the engine's
// taking of the WQE to the CQE, are slices; the number of these is a counter; each event is an instant with its fields.
// False: `file` took not everything. TraceError: the timeline ends at the damage, and is whole.
bool export_timeline(TraceSource& trace, std::FILE* file);

}  // namespace rnicsim::sim

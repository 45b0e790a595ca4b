// What a capture implies of the work of its hosts.
#pragma once

#include "sim/replay/wire_capture.h"
#include "sim/wire_workload/workload.h"

namespace rnicsim::sim::wire_workload {

// ConfigError: no request of it can be told, or more memory is named than a host of the simulation gets.
Workload implied_workload(const replay::WireCapture& capture);

}  // namespace rnicsim::sim::wire_workload

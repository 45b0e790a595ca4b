// SPDX-License-Identifier: Apache-2.0
// Derives the work of a capture's hosts from the capture.
#pragma once

#include "sim/replay/capture/wire_capture.h"
#include "sim/wire_workload/workload.h"

namespace rnicsim::sim::wire_workload {

// ConfigError: no request can be derived, or the requests name more memory than a simulated host gets.
Workload implied_workload(const replay::WireCapture& capture);

}  // namespace rnicsim::sim::wire_workload

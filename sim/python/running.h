// SPDX-License-Identifier: Apache-2.0
// Runs the simulation without blocking Python's signals.
#pragma once

#include "model/base/units.h"

namespace rnicsim::sim::python {

// As run_until(), but may return earlier: Python's signal handlers run from time to time, while simulated time stands
// still. Call again until `end` is reached. An exception of a signal handler is thrown (pybind11::error_already_set).
void run_for_a_while(Duration end);

}  // namespace rnicsim::sim::python

// The simulation runs, and Python is not kept waiting.
#pragma once

#include "model/base/units.h"

namespace rnicsim::sim::python {

// As run_until(), but it may come back sooner: now and then Python has to see to its signals, which is done then, while
// simulated time stands. Whoever wants all of it calls again. What a signal's handler raises is thrown
// (pybind11::error_already_set).
void run_for_a_while(Duration end);

}  // namespace rnicsim::sim::python

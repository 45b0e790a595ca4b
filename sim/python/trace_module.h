// SPDX-License-Identifier: Apache-2.0
// The part of rnicsim._core that reads recorded traces.
#pragma once

#include <pybind11/pybind11.h>

namespace rnicsim::sim::python {

void define_traces(pybind11::module_& module);

}  // namespace rnicsim::sim::python

// SPDX-License-Identifier: Apache-2.0
// Page with plots of the simulated numbers against their references. A browser opens it without a network, and can save
// the plots as SVG.
#pragma once

#include <string>

#include "sim/results/json.h"

namespace rnicsim::sim::calibrate {

// `table`: the output of `calibrate --json`. ConfigError: a part of the page cannot be read.
std::string plots_page(const Json& table);

}  // namespace rnicsim::sim::calibrate

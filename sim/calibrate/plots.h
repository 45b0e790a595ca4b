// The numbers of the experiments over their references, as a page that a browser opens without a network; its plots
// can be saved as SVG.
#pragma once

#include <string>

#include "sim/json.h"

namespace rnicsim::sim::calibrate {

// `table` is what `calibrate --json` writes. ConfigError: a part of the page cannot be read.
std::string plots_page(const Json& table);

}  // namespace rnicsim::sim::calibrate

// SPDX-License-Identifier: Apache-2.0
// Replaces waves.cpp in a build without Verilator, which includes the writer of waves.
#include "sim/config/config_error.h"
#include "sim/trace/waves.h"

namespace rnicsim::sim {

void export_waves(const std::string&, const FilterOptions&, const std::string&) {
  throw ConfigError("--format fst: this rnicsim was built without Verilator, which provides the writer of waves");
}

}  // namespace rnicsim::sim

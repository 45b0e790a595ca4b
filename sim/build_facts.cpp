// SPDX-License-Identifier: Apache-2.0
#include "sim/build_facts.h"

#include <fmt/format.h>
#include <systemc>

namespace rnicsim::sim {

std::string build_facts() {
  return fmt::format(
      "rnicsim {}\n"
      "commit:     {}\n"
      "compiler:   {}\n"
      "build type: {}\n"
      "SystemC:    {}.{}.{}\n"
      "RTL engine: {}",
      kVersion, kCommit, RNICSIM_COMPILER, RNICSIM_BUILD_TYPE, sc_core::sc_version_major, sc_core::sc_version_minor,
      sc_core::sc_version_patch, *RNICSIM_VERILATOR ? RNICSIM_VERILATOR : "none: built without Verilator");
}

}  // namespace rnicsim::sim

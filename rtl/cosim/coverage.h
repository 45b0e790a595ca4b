// SPDX-License-Identifier: Apache-2.0
// Writes coverage data for tests/rtl/coverage.py.
#pragma once

#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>

#include <cstdlib>
#include <string>
#endif

namespace rnicsim::rtl {

// For a model built with coverage: writes its data to a new file in the folder $RNICSIM_COVERAGE.
inline void write_coverage([[maybe_unused]] VerilatedContext& context) {
#if VM_COVERAGE
  static int number = 0;
  if (const char* folder = std::getenv("RNICSIM_COVERAGE"))
    context.coveragep()->write((folder + ("/" + std::to_string(number++)) + ".dat").c_str());
#endif
}

}  // namespace rnicsim::rtl

// SPDX-License-Identifier: Apache-2.0
// Reads the results for a report.
#pragma once

#include <filesystem>

#include "sim/report/result_set.h"

namespace rnicsim::sim::report {

// Reads a folder of `rnicsim sweep`, or one file of `bench --json` or `run --json` (a set with one point). ConfigError:
// "FILE: reason".
ResultSet read_results(const std::filesystem::path& path);

}  // namespace rnicsim::sim::report

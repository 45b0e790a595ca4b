// Reads what a report is made of.
#pragma once

#include <filesystem>

#include "sim/report/result_set.h"

namespace rnicsim::sim::report {

// A folder of `rnicsim sweep`, or one file of `bench --json` or `run --json`, which is a set of one point.
// ConfigError: "FILE: what is wrong with it".
ResultSet read_results(const std::filesystem::path& path);

}  // namespace rnicsim::sim::report

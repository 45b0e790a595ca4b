// SPDX-License-Identifier: Apache-2.0
// Results of a whole sweep as JSON (docs/results.schema.json) and as a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/bench/results/confidence.h"
#include "sim/results/json.h"
#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

using bench::Interval;
using bench::interval_of;

struct Tally {
  std::size_t done = 0, failed = 0, missing = 0;
  std::size_t equal = 0;  // points with equal results for all seeds
};

struct SweepResults {
  Json json;
  std::string csv;
  Tally tally;
  std::vector<std::string> unknown;  // metrics of the plan that no completed run has
};

// ConfigError: a file of the folder cannot be read.
SweepResults results_of(const Store& store);

}  // namespace rnicsim::sim::sweep

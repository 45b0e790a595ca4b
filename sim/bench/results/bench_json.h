// SPDX-License-Identifier: Apache-2.0
// The results of a run for machines, as JSON.
#pragma once

#include "sim/bench/results/results.h"
#include "sim/results/json.h"

namespace rnicsim::sim::bench {

// All members but "simulator" are the same at every run.
Json results_json(const BenchResult& result);

}  // namespace rnicsim::sim::bench

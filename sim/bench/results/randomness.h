// SPDX-License-Identifier: Apache-2.0
// The parts of a run that depend on its seed.
#pragma once

#include <string>
#include <vector>

#include "sim/bench/results/results.h"

namespace rnicsim::sim::bench {

// Examples: "flow[0].address", "faults", "nic.contexts.qpc.replacement", "path choices of switches". Empty: all seeds
// give the same run.
std::vector<std::string> random_parts(const BenchResult& result);

}  // namespace rnicsim::sim::bench

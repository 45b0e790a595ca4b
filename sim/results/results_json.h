// SPDX-License-Identifier: Apache-2.0
// Common parts of the commands' results: docs/results.schema.json.
#pragma once

#include <string_view>
#include <vector>

#include "sim/results/counter_results.h"
#include "sim/results/json.h"

namespace rnicsim::sim {

struct Config;

inline constexpr int kResultsSchema = 1;
// First members of each result: "schema", "command", "rnicsim" (the version).
Json results_of_command(std::string_view command);
// {"counters": {path: growth}, "derived": {path: value, or null for a hit rate without lookups}}
Json counters_json(const std::vector<CounterResult>& counters);
// Each parameter with its resolved value and unit.
Json parameters_json(const Config& config);
Json faults_json(const Config& config);

}  // namespace rnicsim::sim

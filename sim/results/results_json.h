// What the results of the commands have alike: docs/results.schema.json.
#pragma once

#include <string_view>
#include <vector>

#include "sim/results/counter_results.h"
#include "sim/results/json.h"

namespace rnicsim::sim {

struct Config;

inline constexpr int kResultsSchema = 1;
// How each begins: "schema", "command", "rnicsim" (the version).
Json results_of_command(std::string_view command);
// {"counters": {path: growth}, "derived": {path: value, or null where nobody looked}}
Json counters_json(const std::vector<CounterResult>& counters);
// Every parameter as it was resolved, with its unit.
Json parameters_json(const Config& config);
Json faults_json(const Config& config);

}  // namespace rnicsim::sim

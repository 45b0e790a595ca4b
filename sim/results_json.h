// What the results of the commands have alike: docs/results.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/counter_results.h"

namespace rnicsim::sim {

struct Config;

inline constexpr int kResultsSchema = 1;
// How each begins: "schema", "command", "rnicsim" (the version).
nlohmann::ordered_json results_of_command(std::string_view command);
// {"counters": {path: growth}, "derived": {path: value, or null where nobody looked}}
nlohmann::ordered_json counters_json(const std::vector<CounterResult>& counters);
// Every parameter as it was resolved, with its unit.
nlohmann::ordered_json parameters_json(const Config& config);
nlohmann::ordered_json faults_json(const Config& config);

}  // namespace rnicsim::sim

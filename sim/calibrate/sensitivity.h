// SPDX-License-Identifier: Apache-2.0
// How much the numbers of an experiment change with each estimate of its profiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/row.h"
#include "sim/config/param_list.h"
#include "sim/results/json.h"

namespace rnicsim::sim::calibrate {

// Text for --set: the parameter's value times `factor`. A whole number changes by 1 at least. nullopt: the parameter is
// no number, or the result is negative.
std::optional<std::string> scaled(const ParamEntry& entry, double factor);

// Changes each estimate (E) of the NICs and hosts of the row's points, 10% down and up. Runs in child processes, up to
// `jobs` at a time. Prints a table, and returns it: {"id", "what", "simulated", "parameter", "value", "moved_to",
// "then"} for each number and each changed estimate.
Json sensitivity_of(const Row& row, unsigned jobs);

}  // namespace rnicsim::sim::calibrate

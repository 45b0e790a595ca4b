// How far the numbers of an experiment move with each estimate of its profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/row.h"
#include "sim/config/param_list.h"
#include "sim/json.h"

namespace rnicsim::sim::calibrate {

// The parameter's value times `factor`, as --set takes it: a whole number at least one off, and within its range.
// nullopt: there is none.
std::optional<std::string> scaled(const ParamEntry& entry, double factor);

// Each estimate (E) of the NIC and the host of the row's points, 10% down and up; in child processes, up to `jobs` at a
// time. Prints a table, and returns it: {"id", "what", "parameter", "value", "low", "high", "simulated",
// "simulated_low", "simulated_high"} of each number and estimate.
Json sensitivity_of(const Row& row, unsigned jobs);

}  // namespace rnicsim::sim::calibrate

// What came of a sweep, in one: docs/results.schema.json, and a table.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

// The mean of several numbers and, with 95 % confidence, where that of many more would be (Student's t).
struct Interval {
  double mean, low, high;
  std::size_t count;
};
Interval interval_of(const std::vector<double>& values);

struct Tally {
  std::size_t done = 0, failed = 0, missing = 0;
};

struct SweepResults {
  nlohmann::ordered_json json;
  std::string csv;
  Tally tally;
  std::vector<std::string> unknown;  // metrics of the plan that no run that was done has
};

// ConfigError: a file of the folder cannot be read.
SweepResults results_of(const Store& store);

}  // namespace rnicsim::sim::sweep

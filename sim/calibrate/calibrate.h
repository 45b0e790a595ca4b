// SPDX-License-Identifier: Apache-2.0
// `rnicsim calibrate`: runs the experiments of published measurements, and prints expected and simulated numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim::calibrate {

struct CalibrateOptions {
  std::vector<std::string> rows;  // empty: all
  std::string json;               // file for the table; empty: none
  std::string out;                // folder for the results of every point; empty: none
  unsigned jobs = 1;
  bool sensitivity = false;        // instead of the comparison: how the numbers change with each estimate
  std::optional<std::string> fit;  // instead of the comparison: NIC profile whose estimates are searched
  unsigned rounds = 4;             // rounds of the search
};

// Returns 0 if every number is within its tolerance, argued, or not checked; else 1. ConfigError: invalid options.
int run_calibrate(const CalibrateOptions& options);

}  // namespace rnicsim::sim::calibrate

// SPDX-License-Identifier: Apache-2.0
// `rnicsim calibrate --fit`: searches values for the estimates of a NIC's profile that fit all experiments of the NIC.
// Then leaves out each experiment once, and predicts it by a fit to the others.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/calibrate/estimates.h"
#include "sim/calibrate/nic_rows.h"

namespace rnicsim::sim::calibrate {

struct FitOptions {
  unsigned rounds = 4;  // limit of the simulated steps
  unsigned jobs = 1;
};

struct FitRound {
  double region;  // limit of each estimate's change, relative to the distance between its bounds
  double misfit;
  bool is_taken;
};

// Indexed by estimate.
using Values = std::vector<double>;
// Indexed by number, as NicRows::checks().
using Numbers = std::vector<double>;

struct Fit {
  Estimates estimates;  // estimates that move no number are among the fixed ones
  std::vector<FitRound> rounds;
  Values values;
  Numbers profile, fitted;  // with the profile's values, and with `values`
  // By row: the values fitted to all other rows, and the row's numbers with these values. Empty if there is one row
  // only.
  std::vector<Values> values_without;
  Numbers held_out;
};

// Sum of squares of the numbers' errors, in tolerances.
double misfit(const NicRows& rows, const Numbers& numbers);

// Measures the changes of the numbers with each estimate alone, and assumes that changes add up. Simulates the best
// step in this model, within a region. If the step is no improvement, measures each estimate of the step alone at its
// new value, and halves the region.
// ConfigError: no estimate can be searched. std::runtime_error: a run failed.
Fit fit_of(const NicRows& rows, const FitOptions& options);

}  // namespace rnicsim::sim::calibrate

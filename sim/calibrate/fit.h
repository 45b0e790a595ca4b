// `rnicsim calibrate --fit`: the estimates of a NIC's profile are searched for what all its experiments together say,
// and each experiment is held out once, for what the others say of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/calibrate/estimates.h"
#include "sim/calibrate/nic_rows.h"

namespace rnicsim::sim::calibrate {

struct FitOptions {
  unsigned rounds = 4;  // steps that are simulated
  unsigned jobs = 1;
};

struct FitRound {
  double region;  // how far each estimate might go from where it was, of the way between its bounds
  double misfit;
  bool is_taken;
};

// By estimate.
using Values = std::vector<double>;
// By number: NicRows::checks().
using Numbers = std::vector<double>;

struct Fit {
  Estimates estimates;  // those that move no number are among the fixed
  std::vector<FitRound> rounds;
  Values values;
  Numbers profile, fitted;  // as the profile has it, and with these values
  // By row: values that are fitted to all others, and the row's numbers with them; nothing when there is one row only.
  std::vector<Values> values_without;
  Numbers held_out;
};

// The sum of squares of what the numbers are off, in tolerances.
double misfit(const NicRows& rows, const Numbers& numbers);

// What each estimate moves alone is measured, and assumed to add up. The step that is best then, within a region, is
// simulated. If it is no better, each estimate of it is measured alone where it went, and the region shrinks.
// ConfigError: there is no estimate that could be searched. std::runtime_error: a run failed.
Fit fit_of(const NicRows& rows, const FitOptions& options);

}  // namespace rnicsim::sim::calibrate

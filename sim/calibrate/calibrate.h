// `rnicsim calibrate`: runs the experiments of published measurements, and prints what was expected and what came.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim::calibrate {

struct CalibrateOptions {
  std::vector<std::string> rows;   // none: all
  std::string json;                // a file for the table; empty: none
  std::string out;                 // a folder for every point's results; empty: none
  unsigned jobs = 1;
  bool sensitivity = false;        // how the numbers move with each estimate, in the place of the comparison
  std::optional<std::string> fit;  // a NIC's profile, whose estimates are searched in its place
  unsigned rounds = 4;             // of that search
};

// 0: every number is within its tolerance, or argued, or was not judged; 1: one is not. ConfigError: what is wrong with
// the options.
int run_calibrate(const CalibrateOptions& options);

}  // namespace rnicsim::sim::calibrate

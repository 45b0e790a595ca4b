// SPDX-License-Identifier: Apache-2.0
// The estimates (E) in the profiles of a NIC and its host, with their bounds: a fit may change them.
#pragma once

#include <string>
#include <vector>

#include "sim/config/param_list.h"
#include "sim/config/profiles/profile_marks.h"

namespace rnicsim::sim::calibrate {

// Numbers are in ps, bytes or b/s, or have no unit.
struct Estimate {
  std::string path;
  double value, low, high;
  double step;                         // the value is a multiple of this; 0: any value
  std::string (*number_text)(double);  // text of a value as --set takes it

  double width() const { return high - low; }
  // Nearest possible value: a multiple of `step`, or a number with three digits.
  double nearest(double number) const;
  std::string text(double number) const { return number_text(number); }
  std::string set(double number) const { return path + '=' + text(number); }

  bool operator==(const Estimate&) const = default;
};

struct Unsearched {
  std::string path, value, why;
};

struct Estimates {
  std::vector<Estimate> searched;
  std::vector<Unsearched> fixed;
};

// `params`: the parameters of the profiles; they are changed for a moment. ConfigError: the parameter cannot have a
// bound as its value, or its value is not between the bounds.
Estimates estimates_of(const std::vector<MarkedSetting>& settings, const ParamList& params);

}  // namespace rnicsim::sim::calibrate

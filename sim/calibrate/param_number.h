// SPDX-License-Identifier: Apache-2.0
// A parameter's value as a number that can be changed gradually.
#pragma once

#include <optional>
#include <string>

#include "sim/config/param_list.h"

namespace rnicsim::sim::calibrate {

struct ParamNumber {
  double value;                       // in ps, bytes or b/s, or without unit
  bool is_whole;                      // only whole numbers are possible
  std::string (*text)(double value);  // text as --set takes it
};

// nullopt: the parameter is no number.
std::optional<ParamNumber> number_of(const ParamEntry& entry);

}  // namespace rnicsim::sim::calibrate

// A parameter's value as a number, to be moved by degrees.
#pragma once

#include <optional>
#include <string>

#include "sim/config/param_list.h"

namespace rnicsim::sim::calibrate {

struct ParamNumber {
  double value;                       // a time in ps, bytes, b/s, or a number
  bool is_whole;                      // there is nothing between two of them
  std::string (*text)(double value);  // as --set takes it
};

// nullopt: it is none.
std::optional<ParamNumber> number_of(const ParamEntry& entry);

}  // namespace rnicsim::sim::calibrate

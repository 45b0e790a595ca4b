// The estimates (E) of a NIC's profile and of its host's, as what a fit may move.
#pragma once

#include <string>
#include <vector>

#include "sim/config/param_list.h"
#include "sim/config/profile_marks.h"

namespace rnicsim::sim::calibrate {

// Numbers are times in ps, bytes, b/s, or numbers.
struct Estimate {
  std::string path;
  double value, low, high;
  double step;                         // it is a multiple of that; 0: any
  std::string (*number_text)(double);  // as --set takes it

  double width() const { return high - low; }
  // The nearest that one would write down.
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

// `params` are what the profiles make; they are changed and changed back.
// ConfigError: bounds that the parameter cannot have, or without its value between them.
Estimates estimates_of(const std::vector<MarkedSetting>& settings, const ParamList& params);

}  // namespace rnicsim::sim::calibrate

// SPDX-License-Identifier: Apache-2.0
// Text of numbers, with prefixes and units.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/base/units.h"

namespace rnicsim::sim::bench {

// Examples: "12.3 M", "4.56 k", "789".
inline std::string scaled(double value) {
  for (const auto& [scale, prefix] :
       {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e3, "k")})
    if (value >= scale) return fmt::format("{:.4g} {}", value / scale, prefix);
  return fmt::format("{:.4g} ", value);
}

inline std::string shown_time(Duration value) {
  for (const auto& [scale, unit] :
       {std::pair(1e12, "s"), std::pair(1e9, "ms"), std::pair(1e6, "us"), std::pair(1e3, "ns")})
    if (static_cast<double>(value.ps) >= scale)
      return fmt::format("{:.4g} {}", static_cast<double>(value.ps) / scale, unit);
  return fmt::format("{} ps", value.ps);
}

}  // namespace rnicsim::sim::bench

// Thresholds of random early detection (RED), by priority.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/base/ports/priority_map.h"
#include "model/base/units.h"

namespace rnicsim::fabric {

struct RedThresholds {
  ByteCount kmin{};                        // bytes waiting: from here on some frames are marked
  ByteCount kmax{};                        // from here on all are
  double pmax = 0;                         // the share just below kmax
};

// "3:100KB:400KB:0.2 4:5KB:200KB:0.01"; priorities that the text does not name have `others`. nullopt: it is no such
// list, or a kmin is above its kmax, or a pmax is not in 0 .. 1.
std::optional<std::array<RedThresholds, kPriorities>> parse_red_thresholds(std::string_view text,
                                                                           const RedThresholds& others);

}  // namespace rnicsim::fabric

// SPDX-License-Identifier: Apache-2.0
// Thresholds of random early detection (RED), by priority.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/ports/priority_map.h"
#include "model/base/units.h"

namespace rnicsim::fabric {

struct RedThresholds {
  ByteCount kmin{};  // queue length in bytes from which some frames are marked
  ByteCount kmax{};  // queue length in bytes from which all frames are marked
  double pmax = 0;   // probability of a mark just below kmax
};

// Parses "3:100KB:400KB:0.2 4:5KB:200KB:0.01"; other priorities get `others`. nullopt: another form, a kmin above its
// kmax, or a pmax outside 0 .. 1.
std::optional<std::array<RedThresholds, kPriorities>> parse_red_thresholds(std::string_view text,
                                                                           const RedThresholds& others);
// The priorities that such a text names, a bit each; 0: another form.
std::uint32_t named_priorities(std::string_view text);

}  // namespace rnicsim::fabric

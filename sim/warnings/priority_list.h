// SPDX-License-Identifier: Apache-2.0
// Sets of priorities, a bit each, in warnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/base/ports/priority_map.h"

namespace rnicsim::sim {

inline constexpr std::uint32_t kAllPriorities = (1 << kPriorities) - 1;

// "0, 3"
inline std::string priority_list(std::uint32_t bits) {
  std::string text;
  for (std::size_t i = 0; i < kPriorities; ++i)
    if ((bits >> i & 1) != 0) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Parses a text that gives a number to some priorities: "3:15 4:5".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/ports/priority_map.h"

namespace rnicsim {

using PriorityValues = std::array<std::optional<std::uint32_t>, kPriorities>;

// nullopt: the text is not such a list, names a priority twice, or has a number that is 0 or above `most`.
std::optional<PriorityValues> parse_priority_values(std::string_view text, std::uint32_t most);

}  // namespace rnicsim

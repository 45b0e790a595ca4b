// A text that gives some priorities a number each: "3:15 4:5".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/priority_map.h"

namespace rnicsim {

using PriorityValues = std::array<std::optional<std::uint32_t>, kPriorities>;

// nullopt: the text is no such list, a priority is there twice, or a number is 0 or more than `most`.
std::optional<PriorityValues> parse_priority_values(std::string_view text, std::uint32_t most);

}  // namespace rnicsim

// SPDX-License-Identifier: Apache-2.0
#include "model/base/ports/priority_values.h"

#include <ranges>

#include "model/base/parse_number.h"

namespace rnicsim {

std::optional<PriorityValues> parse_priority_values(std::string_view text, std::uint32_t most) {
  PriorityValues values;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view entry(part.begin(), part.end());
    if (entry.empty()) continue;
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto priority = parse_number<std::uint32_t>(entry.substr(0, colon));
    const auto value = parse_number<std::uint32_t>(entry.substr(colon + 1));
    if (!priority || *priority >= kPriorities || values[*priority]) return std::nullopt;
    if (!value || *value == 0 || *value > most) return std::nullopt;
    values[*priority] = *value;
  }
  return values;
}

}  // namespace rnicsim

// SPDX-License-Identifier: Apache-2.0
#include "model/base/ports/priority_map.h"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <string>

namespace rnicsim {
namespace {

// Cuts a number off the front of `text`. nullopt: no number, or one that is not below `limit`.
std::optional<std::size_t> take_number(std::string_view& text, std::size_t limit) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value >= limit) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<PriorityMap> PriorityMap::parse(std::string_view text) {
  PriorityMap map;
  for (const auto part : std::views::split(text, ' ')) {
    std::string_view entry(part.begin(), part.end());
    if (entry.empty()) continue;
    const auto first = take_number(entry, kDscps);
    if (!first) return std::nullopt;
    const auto last = take(entry, '-') ? take_number(entry, kDscps) : first;
    if (!last || *last < *first || !take(entry, ':')) return std::nullopt;
    const auto priority = take_number(entry, kPriorities);
    if (!priority || !entry.empty()) return std::nullopt;
    std::fill(map.priorities_.begin() + *first, map.priorities_.begin() + *last + 1,
              static_cast<std::uint8_t>(*priority));
  }
  return map;
}

}  // namespace rnicsim

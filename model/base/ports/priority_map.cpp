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

// Reads the entries of `text`, as "26:3 40-47:5", into `map`. False: the text is not such a list.
template <std::size_t codes>
bool read_map(std::string_view text, std::array<std::uint8_t, codes>& map) {
  for (const auto part : std::views::split(text, ' ')) {
    std::string_view entry(part.begin(), part.end());
    if (entry.empty()) continue;
    const auto first = take_number(entry, codes);
    if (!first) return false;
    const auto last = take(entry, '-') ? take_number(entry, codes) : first;
    if (!last || *last < *first || !take(entry, ':')) return false;
    const auto priority = take_number(entry, kPriorities);
    if (!priority || !entry.empty()) return false;
    std::fill(map.begin() + *first, map.begin() + *last + 1, static_cast<std::uint8_t>(*priority));
  }
  return true;
}

}  // namespace

std::optional<PriorityMap> PriorityMap::parse(std::string_view dscps, std::string_view pcps, Trust trust) {
  PriorityMap map;
  map.trust_ = trust;
  if (!read_map(dscps, map.dscp_) || !read_map(pcps, map.pcp_)) return std::nullopt;
  return map;
}

}  // namespace rnicsim

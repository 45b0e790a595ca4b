// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/red_thresholds.h"

#include <cstdint>
#include <ranges>
#include <vector>

#include "model/base/parse_number.h"

namespace rnicsim::fabric {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, by)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

struct Named {
  std::uint32_t priorities = 0;  // a bit each
  std::array<RedThresholds, kPriorities> thresholds{};
};

std::optional<Named> parse(std::string_view text) {
  Named named;
  for (const auto entry : split(text, ' ')) {
    if (entry.empty()) continue;
    const auto parts = split(entry, ':');
    if (parts.size() != 4) return std::nullopt;
    const auto priority = parse_number<std::size_t>(parts[0]);
    const auto kmin = parse_byte_count(parts[1]), kmax = parse_byte_count(parts[2]);
    const auto pmax = parse_number<double>(parts[3]);
    if (!priority || *priority >= kPriorities || !kmin || !kmax || *kmin > *kmax) return std::nullopt;
    if (!pmax || !(*pmax >= 0 && *pmax <= 1)) return std::nullopt;
    if ((named.priorities >> *priority & 1) != 0) return std::nullopt;
    named.priorities |= 1u << *priority;
    named.thresholds[*priority] = {*kmin, *kmax, *pmax};
  }
  return named;
}

}  // namespace

std::optional<std::array<RedThresholds, kPriorities>> parse_red_thresholds(std::string_view text,
                                                                           const RedThresholds& others) {
  auto named = parse(text);
  if (!named) return std::nullopt;
  for (std::size_t priority = 0; priority < kPriorities; ++priority)
    if ((named->priorities >> priority & 1) == 0) named->thresholds[priority] = others;
  return named->thresholds;
}

std::uint32_t named_priorities(std::string_view text) { return parse(text).value_or(Named{}).priorities; }

}  // namespace rnicsim::fabric

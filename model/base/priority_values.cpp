#include "model/base/priority_values.h"

#include <charconv>
#include <ranges>

namespace rnicsim {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<PriorityValues> parse_priority_values(std::string_view text, std::uint32_t most) {
  PriorityValues values;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view entry(part.begin(), part.end());
    if (entry.empty()) continue;
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto priority = number(entry.substr(0, colon)), value = number(entry.substr(colon + 1));
    if (!priority || *priority >= kPriorities || values[*priority]) return std::nullopt;
    if (!value || *value == 0 || *value > most) return std::nullopt;
    values[*priority] = *value;
  }
  return values;
}

}  // namespace rnicsim

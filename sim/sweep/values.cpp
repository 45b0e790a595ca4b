// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "model/base/units.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::sweep {
namespace {

constexpr std::size_t kMostValues = 100'000;

// A number with or without a unit; with a unit, `value` is in the smallest unit (ps, bytes, b/s).
struct Quantity {
  enum class Kind { bare, time, bytes, bits_per_second };
  double value;
  Kind kind;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<Quantity> parse_quantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(number))
    return Quantity{number, Quantity::Kind::bare};
  if (const auto time = parse_duration(text)) return Quantity{static_cast<double>(time->ps), Quantity::Kind::time};
  if (const auto bytes = parse_byte_count(text))
    return Quantity{static_cast<double>(bytes->bytes), Quantity::Kind::bytes};
  if (const auto rate = parse_bit_rate(text))
    return Quantity{static_cast<double>(rate->bits_per_second), Quantity::Kind::bits_per_second};
  return std::nullopt;
}

std::string text_of(const Quantity& quantity) {
  const auto whole = std::llround(quantity.value);
  switch (quantity.kind) {
    case Quantity::Kind::time: return rnicsim::to_string(Duration{whole});
    case Quantity::Kind::bytes: return rnicsim::to_string(ByteCount{static_cast<std::uint64_t>(whole)});
    case Quantity::Kind::bits_per_second: return rnicsim::to_string(BitRate{static_cast<std::uint64_t>(whole)});
    case Quantity::Kind::bare: break;
  }
  return std::abs(quantity.value) < 1e15 && quantity.value == std::round(quantity.value)
             ? fmt::format("{}", whole)
             : fmt::format("{:.12g}", quantity.value);
}

class Reader {
 public:
  explicit Reader(std::string_view key) : key_(key) {}

  void add(std::string_view element, Axis& axis) const {
    const auto text = trimmed(element);
    if (text.empty()) refuse(element, "an element is empty");
    const auto dots = text.find("..");
    if (dots == text.npos) {
      axis.values.emplace_back(text);
      return;
    }
    const auto mark = text.find_first_of("*+", dots + 2);
    const auto first = number(text, text.substr(0, dots));
    const auto last = number(text, text.substr(dots + 2, mark == text.npos ? mark : mark - dots - 2));
    if (first.kind != last.kind) refuse(text, "the ends of a range need the same unit");
    if (last.value < first.value) refuse(text, "the end of the range is before its begin");
    const bool geometric = mark != text.npos && text[mark] == '*';
    const auto step = mark == text.npos ? Quantity{1, first.kind} : number(text, text.substr(mark + 1));
    if (mark == text.npos && first.kind != Quantity::Kind::bare) refuse(text, "a range needs a step, such as *2");
    if (geometric && (step.kind != Quantity::Kind::bare || step.value <= 1 || first.value <= 0))
      refuse(text, "a factor must be above 1, and its range must begin above 0");
    if (!geometric && (step.kind != first.kind || step.value <= 0))
      refuse(text, "a step must be above 0 and have the unit of the ends");
    axis.spacing = geometric ? Spacing::geometric : Spacing::linear;
    expand(text, first, last, geometric, step.value, axis);
  }

  [[noreturn]] void refuse(std::string_view text, std::string_view why) const {
    throw ConfigError(fmt::format("{}: '{}': {}", shown(key_), shown(text), why));
  }

 private:
  Quantity number(std::string_view whole, std::string_view text) const {
    const auto quantity = parse_quantity(trimmed(text));
    if (!quantity) refuse(whole, fmt::format("'{}' is not a number with or without a unit", shown(trimmed(text))));
    return *quantity;
  }

  // Computes each value from the first by multiplication, so that rounding errors do not add up.
  void expand(std::string_view text, const Quantity& first, const Quantity& last, bool geometric, double step,
              Axis& axis) const {
    constexpr double kSlack = 1 + 1e-9;
    for (std::size_t i = 0;; ++i) {
      const double n = static_cast<double>(i);
      const double value = geometric ? first.value * std::pow(step, n) : first.value + step * n;
      if (value > last.value * kSlack) return;
      if (axis.values.size() >= kMostValues) refuse(text, fmt::format("more than {} values", kMostValues));
      axis.values.push_back(text_of({value, first.kind}));
    }
  }

  const std::string_view key_;
};

Axis made(std::string_view key, const std::vector<std::string_view>& elements) {
  Axis axis{std::string(key), {}, Spacing::list};
  const Reader reader(key);
  for (const auto element : elements) reader.add(element, axis);
  if (axis.values.empty()) reader.refuse("", "no value");
  if (elements.size() > 1) axis.spacing = Spacing::list;
  auto sorted = axis.values;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) reader.refuse(*twice, "a value is listed twice");
  return axis;
}

}  // namespace

const char* to_string(Spacing spacing) {
  return spacing == Spacing::list ? "list" : spacing == Spacing::linear ? "linear" : "geometric";
}

Axis parse_axis(std::string_view key, std::string_view text) {
  std::vector<std::string_view> elements;
  for (std::size_t from = 0;;) {
    const auto comma = text.find(',', from);
    elements.push_back(text.substr(from, comma == text.npos ? comma : comma - from));
    if (comma == text.npos) break;
    from = comma + 1;
  }
  return made(key, elements);
}

Axis parse_axis(std::string_view key, const std::vector<std::string>& elements) {
  return made(key, {elements.begin(), elements.end()});
}

}  // namespace rnicsim::sim::sweep

// SPDX-License-Identifier: Apache-2.0
#include "sim/check/quantities.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "model/base/units.h"
#include "sim/check/values.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check {

using bench::TableReader;

namespace {

std::optional<double> parse_quantity(std::string_view text, Unit unit) {
  if (unit == Unit::time)
    if (const auto time = parse_duration(text)) return double(time->ps);
  if (unit == Unit::rate)
    if (const auto rate = parse_bit_rate(text)) return double(rate->bits_per_second);
  if (unit == Unit::bytes)
    if (const auto size = parse_byte_count(text)) return double(size->bytes);
  return std::nullopt;
}

bool has_unit(Unit unit) { return unit == Unit::time || unit == Unit::rate; }

const char* example(Unit unit) {
  switch (unit) {
    case Unit::time: return "a time such as \"5 us\"";
    case Unit::rate: return "a rate such as \"95 Gb/s\"";
    case Unit::bytes: return "a number of bytes, or a size such as \"4 KiB\"";
    default: return "a number";
  }
}

// Parses a finite number, or a text with the unit.
std::optional<double> quantity(const toml::node& node, Unit unit) {
  if (node.is_number() && !has_unit(unit)) {
    const double number = *node.value<double>();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
  return node.is_string() ? parse_quantity(node.as_string()->get(), unit) : std::nullopt;
}

}  // namespace

std::optional<double> parse_share(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto rest = text.substr(std::size_t(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const bool good = error == std::errc{} && rest == "%" && std::isfinite(number) && number >= 0 && number <= 100;
  return good ? std::optional(number / 100) : std::nullopt;
}

std::optional<Margin> read_margin(TableReader& reader, std::string_view key, const std::string& value) {
  const auto unit = unit_of(value);
  const auto* node = reader.find(key);
  if (!node) return std::nullopt;
  if (node->is_string())
    if (const auto share = parse_share(node->as_string()->get())) return Margin{0, *share};
  const auto number = quantity(*node, unit);
  if (!number || *number < 0) reader.refuse(key, fmt::format("a share such as \"1 %\", or {},", example(unit)));
  return Margin{*number, 0};
}

Operand read_operand(TableReader& reader, std::string_view key, const std::string& value) {
  const auto unit = unit_of(value);
  const auto& node = *reader.find(key);
  if (const auto number = quantity(node, unit)) return *number;
  const auto refuse = [&] { reader.refuse(key, fmt::format("{}, or another value's name,", example(unit))); };
  if (!node.is_string()) refuse();
  const auto& name = node.as_string()->get();
  // A quantity begins with a digit, a name with a letter. The name must denote one value: no '*'.
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0])) || name.find_first_of(" *") != name.npos)
    refuse();
  if (unit_of(name) != unit)
    reader.complain(key, fmt::format("{} and {} have different units", shown(value), shown(name)));
  return name;
}

}  // namespace rnicsim::sim::check

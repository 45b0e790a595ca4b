// SPDX-License-Identifier: Apache-2.0
#include "model/base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

namespace rnicsim {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};
constexpr Unit kDurationUnits[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
constexpr Unit kByteUnits[] = {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kDecimalByteUnits[] = {{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
constexpr Unit kRateUnits[] = {{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12}};

std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  auto name = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const auto& unit : units) {
    if (unit.name != name) continue;
    const double value = number * unit.scale;
    // Decimal fractions such as 0.3 ns are exact to a picosecond but not in binary: round, and refuse real fractions.
    const double rounded = std::round(value);
    if (std::abs(value - rounded) > 1e-6 * std::max(1.0, value) || rounded >= 0x1p63) return std::nullopt;
    return static_cast<std::uint64_t>(rounded);
  }
  return std::nullopt;
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const auto& unit : units)
    if (value != 0 && static_cast<double>(value) >= unit.scale) best = &unit;
  return fmt::format("{} {}", static_cast<double>(value) / best->scale, best->name);
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurationUnits);
  return value ? std::optional(Duration{static_cast<std::int64_t>(*value)}) : std::nullopt;
}
std::optional<ByteCount> parse_byte_count(std::string_view text) {
  auto value = parse(text, kByteUnits);
  if (!value) value = parse(text, kDecimalByteUnits);
  return value ? std::optional(ByteCount{*value}) : std::nullopt;
}
std::optional<BitRate> parse_bit_rate(std::string_view text) {
  const auto value = parse(text, kRateUnits);
  return value ? std::optional(BitRate{*value}) : std::nullopt;
}
std::string to_string(Duration value) { return format(static_cast<std::uint64_t>(value.ps), kDurationUnits); }
// Prints the shorter of the binary and the decimal unit, the one that the user probably wrote.
std::string to_string(ByteCount value) {
  const auto binary = format(value.bytes, kByteUnits), decimal = format(value.bytes, kDecimalByteUnits);
  return decimal.size() < binary.size() ? decimal : binary;
}
std::string to_string(BitRate value) { return format(value.bits_per_second, kRateUnits); }

}  // namespace rnicsim

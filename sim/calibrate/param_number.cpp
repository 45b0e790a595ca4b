// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/param_number.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace rnicsim::sim::calibrate {
namespace {

std::uint64_t nearest_whole(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

ParamNumber as_number(const Duration& time) {
  return {static_cast<double>(time.ps), true,
          [](double ps) { return to_string(Duration{static_cast<std::int64_t>(std::llround(ps))}); }};
}
ParamNumber as_number(const ByteCount& size) {
  return {static_cast<double>(size.bytes), true,
          [](double bytes) { return to_string(ByteCount{nearest_whole(bytes)}); }};
}
ParamNumber as_number(const BitRate& rate) {
  return {static_cast<double>(rate.bits_per_second), true,
          [](double bits) { return to_string(BitRate{nearest_whole(bits)}); }};
}
ParamNumber as_number(double number) {
  return {number, false, [](double value) { return fmt::format("{}", value); }};
}
ParamNumber as_number(std::uint64_t number) {
  return {static_cast<double>(number), true, [](double value) { return fmt::format("{}", nearest_whole(value)); }};
}

}  // namespace

std::optional<ParamNumber> number_of(const ParamEntry& entry) {
  return std::visit(
      [](const auto* value) -> std::optional<ParamNumber> {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, std::string>)
          return std::nullopt;
        else if constexpr (std::is_same_v<Value, std::uint32_t>)
          return as_number(std::uint64_t{*value});
        else
          return as_number(*value);
      },
      entry.value);
}

}  // namespace rnicsim::sim::calibrate

// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/estimates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/calibrate/param_number.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::calibrate {
namespace {

// Number that the parameter has with the value `text`.
double number_at(const ParamEntry& entry, const std::string& text) {
  const auto before = entry.value_text();
  if (const auto wrong = entry.assign(text)) throw ConfigError(*wrong);
  const double number = number_of(entry)->value;
  entry.assign(before);
  return number;
}

// Times are estimated to three digits, sizes of caches and buffers are multiples of a line, and counts are whole.
double usual_step(const ParamEntry& entry) {
  constexpr double kLine = 64;
  if (std::holds_alternative<ByteCount*>(entry.value)) return kLine;
  const bool is_count =
      std::holds_alternative<std::uint32_t*>(entry.value) || std::holds_alternative<std::uint64_t*>(entry.value);
  return is_count ? 1 : 0;
}

Estimate estimate_of(const Setting& setting, const Bounds& bounds, const ParamEntry& entry) {
  const auto current = number_of(entry);
  if (!current) throw ConfigError(fmt::format("{} is not a number", setting.text));
  const auto& now = *current;
  const bool is_factor = bounds.unit == kTimesTheValue;
  const auto number = [&](double bound) {
    if (is_factor) return number_at(entry, now.text(bound * now.value));
    return number_at(entry, fmt::format("{}{}{}", bound, bounds.unit.empty() ? "" : " ", bounds.unit));
  };
  Estimate estimate{setting.path, now.value, number(bounds.low), number(bounds.high), usual_step(entry), now.text};
  if (bounds.step > 0) estimate.step = number(bounds.step);
  if (estimate.value < estimate.low || estimate.value > estimate.high)
    throw ConfigError(fmt::format("{} is not between the bounds", setting.text));
  return estimate;
}

}  // namespace

double Estimate::nearest(double number) const {
  if (number <= low) return low;
  if (number >= high) return high;
  double unit = step;
  if (unit == 0 && number > 0) {
    constexpr int kDigits = 3;
    unit = std::pow(10, std::floor(std::log10(number)) + 1 - kDigits);
  }
  if (unit > 0) number = std::round(number / unit) * unit;
  return std::clamp(number, low, high);
}

Estimates estimates_of(const std::vector<MarkedSetting>& settings, const ParamList& params) {
  Estimates estimates;
  for (const auto& [setting, mark] : settings) {
    if (!mark || mark->source != Source::estimated) continue;
    if (!mark->bounds) {
      estimates.fixed.push_back(
          {setting.path, setting.text, mark->is_fixed ? mark->text : "the estimate has no bounds"});
      continue;
    }
    try {
      estimates.searched.push_back(estimate_of(setting, *mark->bounds, *params.find(setting.path)));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}, its bounds: {}", setting.where, setting.path, error.what()));
    }
  }
  return estimates;
}

}  // namespace rnicsim::sim::calibrate

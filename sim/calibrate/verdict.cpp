// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rnicsim::sim::calibrate {
namespace {

bool is_open(const Check& check) { return check.high >= kMuch; }
bool has_a_middle(const Check& check) {
  return std::abs((check.expected - check.low) - (check.high - check.expected)) < 1e-9;
}

}  // namespace

// A range counts with half of its width, so that its ends weigh as much as those of a number with a tolerance. An open
// range counts with a tenth of its end, the usual tolerance of ratios here.
double tolerance_of(const Check& check) { return is_open(check) ? check.low / 10 : (check.high - check.low) / 2; }

// A number with a tolerance is best at the published value. A range is all that was published: all values within it are
// equally good, and a fit must not improve them at the cost of another number.
double tolerances_off(const Check& check, double simulated) {
  if (has_a_middle(check)) return (simulated - check.expected) / tolerance_of(check);
  return (simulated - std::clamp(simulated, check.low, check.high)) / tolerance_of(check);
}

std::string tolerance_text(const Check& check) {
  if (has_a_middle(check)) return fmt::format("+-{:.4g}", check.high - check.expected);
  if (is_open(check)) return fmt::format(">= {:.4g}", check.low);
  return fmt::format("{:.4g} .. {:.4g}", check.low, check.high);
}

Verdict verdict_on(const Check& check, double simulated) {
  if (simulated < check.low || simulated > check.high) return check.argued.empty() ? Verdict::fail : Verdict::argued;
  constexpr double kNear = 0.05;
  const bool open = is_open(check);
  const double margin = kNear * (open ? check.low : check.high - check.low);
  const double to_edge = std::min(simulated - check.low, open ? simulated : check.high - simulated);
  return to_edge < margin ? Verdict::near_edge : Verdict::pass;
}

bool is_within(Verdict verdict) { return verdict == Verdict::pass || verdict == Verdict::near_edge; }

std::string_view text_of(Verdict verdict) {
  static constexpr std::array<std::string_view, 4> kTexts = {"PASS", "PASS, near its edge", "MISS, argued", "FAIL"};
  return kTexts[static_cast<std::size_t>(verdict)];
}

}  // namespace rnicsim::sim::calibrate

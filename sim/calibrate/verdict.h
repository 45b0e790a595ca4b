// SPDX-License-Identifier: Apache-2.0
// Judges a simulated number against the published one.
#pragma once

#include <string>
#include <string_view>

#include "sim/calibrate/row.h"

namespace rnicsim::sim::calibrate {

enum class Verdict {
  pass,
  near_edge,  // within its tolerance, but within 5 % of the tolerance's width of one of its ends
  argued,     // outside of its tolerance; Check::argued has the explanation
  fail,
};

// Tolerance that a fit counts as 1, in the number's unit.
double tolerance_of(const Check& check);
// Error in tolerances; negative: the number is too small.
double tolerances_off(const Check& check, double simulated);
// Examples: "+-0.1", ">= 15", "0.5 .. 0.95".
std::string tolerance_text(const Check& check);

Verdict verdict_on(const Check& check, double simulated);
bool is_within(Verdict verdict);
std::string_view text_of(Verdict verdict);

}  // namespace rnicsim::sim::calibrate

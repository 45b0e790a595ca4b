// What a number of a calibration experiment is worth beside the published one.
#pragma once

#include <string>
#include <string_view>

#include "sim/calibrate/row.h"

namespace rnicsim::sim::calibrate {

enum class Verdict {
  pass,
  near_edge,  // within its tolerance, and within a twentieth of it of one of its ends
  argued,     // not within it, and Check::argued says why that is known
  fail,
};

// What a fit counts as one: in the number's unit.
double tolerance_of(const Check& check);
// How far off it is, in tolerances; less than 0: too little.
double tolerances_off(const Check& check, double simulated);
// "+-0.1", ">= 15", "0.5 .. 0.95"
std::string tolerance_text(const Check& check);

Verdict judge(const Check& check, double simulated);
bool is_within(Verdict verdict);
std::string_view text_of(Verdict verdict);

}  // namespace rnicsim::sim::calibrate

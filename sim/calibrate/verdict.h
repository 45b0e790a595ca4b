// What a number of a calibration experiment is worth beside the published one.
#pragma once

#include <string_view>

#include "sim/calibrate/row.h"

namespace rnicsim::sim::calibrate {

enum class Verdict {
  pass,
  near_edge,  // within its tolerance, and within a twentieth of it of one of its ends
  argued,     // not within it, and Check::argued says why that is known
  fail,
};

Verdict judge(const Check& check, double simulated);
bool is_within(Verdict verdict);
std::string_view text_of(Verdict verdict);

}  // namespace rnicsim::sim::calibrate

#include "sim/calibrate/verdict.h"

#include <algorithm>
#include <array>

namespace rnicsim::sim::calibrate {

Verdict judge(const Check& check, double simulated) {
  if (simulated < check.low || simulated > check.high) return check.argued.empty() ? Verdict::fail : Verdict::argued;
  constexpr double kNear = 0.05;
  const bool is_open = check.high >= kMuch;
  const double margin = kNear * (is_open ? check.low : check.high - check.low);
  const double to_edge = std::min(simulated - check.low, is_open ? simulated : check.high - simulated);
  return to_edge < margin ? Verdict::near_edge : Verdict::pass;
}

bool is_within(Verdict verdict) { return verdict == Verdict::pass || verdict == Verdict::near_edge; }

std::string_view text_of(Verdict verdict) {
  static constexpr std::array<std::string_view, 4> kTexts = {"PASS", "PASS, near its edge", "MISS, argued", "FAIL"};
  return kTexts[static_cast<std::size_t>(verdict)];
}

}  // namespace rnicsim::sim::calibrate

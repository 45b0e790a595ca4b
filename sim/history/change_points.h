// Change points: the places at which a series of numbers changes its level.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rnicsim::sim::history {

struct ChangePoint {
  std::size_t at;        // the first value of the new level
  double before, after;  // means of the two levels
  double p;              // how often numbers without a change look so; 0 where they do not scatter
};

// Binary segmentation (Scott and Knott 1974): the place that divides the series best, if Student's t of the two parts
// is significant at kLevel, and then each part by itself. Bonferroni's correction is for all places and both variances:
// - pooled, of the two parts: one value behind many is a level, too;
// - of the median difference between successive values (as Fryzlewicz 2014), to which other changes of the series add
//   nothing. A series of which most values are like the one before does not scatter: each other value is a change.
// Three values or more are needed.
inline constexpr double kLevel = 0.01;
std::vector<ChangePoint> change_points(std::span<const double> values);

}  // namespace rnicsim::sim::history

// SPDX-License-Identifier: Apache-2.0
// Finds change points: positions at which the level of a series changes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rnicsim::sim::history {

struct ChangePoint {
  std::size_t at;        // index of the first value of the new level
  double before, after;  // means of the two levels
  double p;              // probability of such a change by chance; 0 for a series without scatter
};

// Binary segmentation (Scott and Knott 1974): finds the split that separates the series best, accepts it if Student's t
// of the two parts is significant at kLevel, and continues in each part. Two estimates of the variance are tested, with
// Bonferroni's correction for all splits and both variances:
// - the pooled variance of both parts: a single value after many others can be a level;
// - the median difference of neighbouring values (as Fryzlewicz 2014), which other changes of the series do not
// increase. If most values equal the value before, the series has no scatter, and every other value is a change.
// At least three values are needed.
inline constexpr double kLevel = 0.01;
std::vector<ChangePoint> change_points(std::span<const double> values);

}  // namespace rnicsim::sim::history

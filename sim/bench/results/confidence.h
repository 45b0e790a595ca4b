// SPDX-License-Identifier: Apache-2.0
// Confidence interval of a mean.
#pragma once

#include <cstddef>
#include <vector>

namespace rnicsim::sim::bench {

// Mean of several values, and the 95 % confidence interval of the mean (Student's t).
struct Interval {
  double mean, low, high;
  std::size_t count;
};
Interval interval_of(const std::vector<double>& values);

}  // namespace rnicsim::sim::bench

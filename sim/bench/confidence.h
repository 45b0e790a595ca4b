// Where a mean would be if more were measured.
#pragma once

#include <cstddef>
#include <vector>

namespace rnicsim::sim::bench {

// The mean of several numbers and, with 95 % confidence, where that of many more would be (Student's t).
struct Interval {
  double mean, low, high;
  std::size_t count;
};
Interval interval_of(const std::vector<double>& values);

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/confidence.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace rnicsim::sim::bench {

Interval interval_of(const std::vector<double>& values) {
  const auto count = values.size();
  const double n = static_cast<double>(count);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (count < 2) return {mean, mean, mean, count};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  constexpr double kTail = 0.025;
  // Only double: at program start Boost would initialize constants in long double, whose precision valgrind lacks.
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, InDouble> distribution(n - 1);
  const double reach = quantile(complement(distribution, kTail)) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - reach, mean + reach, count};
}

}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
#include "sim/history/change_points.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <optional>

namespace rnicsim::sim::history {
namespace {

// Relative differences below this are rounding errors of double.
constexpr double kRounding = 1e-9;

struct Sums {
  double count = 0, sum = 0, squares = 0;

  void add(double value, double sign = 1) {
    count += sign;
    sum += sign * value;
    squares += sign * value * value;
  }
  double mean() const { return sum / count; }
  // Sum of the squared distances from the mean.
  double scatter() const { return std::max(0.0, squares - sum * sum / count); }
};

// Standard deviation without the level changes, and its degrees of freedom.
struct Noise {
  double deviation = 0, freedom = 1;
};

// The median distance of two normal values is 0.954 standard deviations. Efficiency relative to the standard deviation:
// 37 % for the median (Rousseeuw and Croux 1993), times 2/3 for differences of neighbours (von Neumann 1941). The
// degrees of freedom are reduced accordingly.
Noise noise_of(std::span<const double> values) {
  constexpr double kMedianDistance = 0.954, kEfficiency = 0.37 * 2 / 3;
  if (values.size() < 2) return {};
  std::vector<double> distances;
  for (std::size_t i = 1; i < values.size(); ++i) distances.push_back(std::abs(values[i] - values[i - 1]));
  const auto median = distances.begin() + std::ptrdiff_t((distances.size() - 1) / 2);
  std::ranges::nth_element(distances, median);
  return {*median / kMedianDistance, std::max(1.0, kEfficiency * double(distances.size()))};
}

struct Split {
  std::size_t at;
  double step;     // difference of the means
  double share;    // variance of the step relative to the variance of one value
  double scatter;  // sum of squares inside both parts
};

// The split with the least scatter; nullopt: all values are equal within rounding.
std::optional<Split> best_split(std::span<const double> values) {
  // Subtract the first value, so that equal values become exactly 0.
  Sums left, right;
  double largest = 0;
  for (const double value : values) {
    right.add(value - values[0]);
    largest = std::max(largest, std::abs(value));
  }
  std::optional<Split> best;
  for (std::size_t at = 1; at < values.size(); ++at) {
    left.add(values[at - 1] - values[0]);
    right.add(values[at - 1] - values[0], -1);
    const double step = std::abs(left.mean() - right.mean());
    const double scatter = left.scatter() + right.scatter();
    if (step > largest * kRounding && (!best || scatter < best->scatter))
      best = Split{at, step, 1 / left.count + 1 / right.count, scatter};
  }
  return best;
}

// Probability of such a step by chance.
double probability_of(double step, double deviation, double freedom) {
  if (deviation <= step * kRounding) return 0;
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, InDouble> distribution(freedom);
  return 2 * cdf(complement(distribution, step / deviation));
}

double probability_of(const Split& split, std::size_t count, const Noise& noise) {
  const double freedom = double(count) - 2;
  const double pooled = probability_of(split.step, std::sqrt(split.scatter / freedom * split.share), freedom);
  const double robust = probability_of(split.step, noise.deviation * std::sqrt(split.share), noise.freedom);
  return std::min(1.0, 2 * double(count - 1) * std::min(pooled, robust));
}

double mean_of(std::span<const double> values) {
  Sums sums;
  for (const double value : values) sums.add(value);
  return sums.mean();
}

void divide(std::span<const double> values, std::size_t offset, const Noise& noise, std::vector<ChangePoint>& found) {
  if (values.size() < 3) return;
  const auto split = best_split(values);
  if (!split) return;
  const double p = probability_of(*split, values.size(), noise);
  if (p > kLevel) return;
  divide(values.first(split->at), offset, noise, found);
  found.push_back({offset + split->at, 0, 0, p});
  divide(values.subspan(split->at), offset + split->at, noise, found);
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> values) {
  std::vector<ChangePoint> found;
  divide(values, 0, noise_of(values), found);
  // Means of the final levels.
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto begin = i == 0 ? 0 : found[i - 1].at;
    const auto end = i + 1 == found.size() ? values.size() : found[i + 1].at;
    found[i].before = mean_of(values.subspan(begin, found[i].at - begin));
    found[i].after = mean_of(values.subspan(found[i].at, end - found[i].at));
  }
  return found;
}

}  // namespace rnicsim::sim::history

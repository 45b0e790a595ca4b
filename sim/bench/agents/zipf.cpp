// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/zipf.h"

#include <algorithm>

namespace rnicsim::sim::bench {
namespace {

// (e^x - 1) / x, and log(1 + x) / x, also for x near 0.
double growth(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double decline(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

}  // namespace

Zipf::Zipf(std::uint64_t count, double exponent)
    : count_(count),
      exponent_(exponent),
      least_(integral(1.5) - 1),
      most_(integral(static_cast<double>(count) + 0.5)),
      near_(2 - inverse(integral(2.5) - density(2))) {}

double Zipf::integral(double x) const {
  const double log = std::log(x);
  return growth((1 - exponent_) * log) * log;
}

double Zipf::inverse(double area) const {
  const double x = std::max(area * (1 - exponent_), -1.0);
  return std::exp(decline(x) * area);
}

std::uint64_t Zipf::draw(std::mt19937_64& generator) const {
  for (;;) {
    const double share = static_cast<double>(generator() >> 11) * 0x1p-53;
    const double area = most_ + share * (least_ - most_);
    const double x = inverse(area);
    const double number = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (number - x <= near_ || area >= integral(number + 0.5) - density(number))
      return static_cast<std::uint64_t>(number) - 1;
  }
}

}  // namespace rnicsim::sim::bench

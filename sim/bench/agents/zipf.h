// SPDX-License-Identifier: Apache-2.0
// Random numbers by Zipf's law: the k-th most frequent of n numbers has a frequency proportional to 1 / k^s. The method
// of rejection and inversion (Hoermann and Derflinger 1996) needs no table.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace rnicsim::sim::bench {

class Zipf {
 public:
  Zipf() : Zipf(1, 1) {}
  Zipf(std::uint64_t count, double exponent);

  // The most frequent number is 0.
  std::uint64_t draw(std::mt19937_64& generator) const;

 private:
  double integral(double x) const;  // integral of the density 1 / x^s, from 1 to x
  double inverse(double area) const;
  double density(double x) const { return std::exp(-exponent_ * std::log(x)); }

  std::uint64_t count_;
  double exponent_;
  double least_, most_;  // limits of the area to draw from
  double near_;          // distance from a number below which nothing is rejected
};

}  // namespace rnicsim::sim::bench

// Numbers by Zipf's law: the k-th most frequent of n comes in proportion to 1 / k^s. By rejection and inversion
// (Hoermann and Derflinger 1996): no table, however many there are.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace rnicsim::sim::bench {

class Zipf {
 public:
  Zipf() : Zipf(1, 1) {}
  Zipf(std::uint64_t count, double exponent);

  // 0 is the most frequent.
  std::uint64_t draw(std::mt19937_64& generator) const;

 private:
  double integral(double x) const;  // of the density 1 / x^s, from 1 on
  double inverse(double area) const;
  double density(double x) const { return std::exp(-exponent_ * std::log(x)); }

  std::uint64_t count_;
  double exponent_;
  double least_, most_;  // areas to draw from
  double near_;          // so near to a number nothing is rejected
};

}  // namespace rnicsim::sim::bench

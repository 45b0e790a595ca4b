// SPDX-License-Identifier: Apache-2.0
// Model of the numbers that a fit searches in: the changes of the numbers with each parameter alone are added up.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rnicsim::sim::calibrate {

// Change of the numbers with one parameter alone: known at some moves, linear between and beyond them. The two sides
// are independent, since a resource may become the bottleneck on one side only. A move of 0 changes nothing.
class Curve {
 public:
  void add(double move, std::vector<double> change);
  bool knows(double move) const;
  void change(std::vector<double>& numbers, double move) const;

 private:
  struct Knot {
    double move;
    std::vector<double> change;
  };
  std::vector<Knot> knots_;  // knots of one side are ordered by distance from 0; none is at 0
};

struct Surrogate {
  std::vector<double> start;  // the numbers without any move
  std::vector<Curve> curves;  // by parameter

  std::vector<double> at(const std::vector<double>& moves) const;
};

// Bounds, by parameter.
struct Box {
  std::vector<double> low, high;
};

// Error of a number at a value, in tolerances.
using Off = std::function<double(std::size_t number, double value)>;

// Returns the moves within the box, which holds `from`, with the least sum of squares over `numbers`. Each move has a
// small cost, so that a parameter without influence stays at the profile's value. Deterministic.
std::vector<double> least_squares(const Surrogate& surrogate, const Off& off, const std::vector<std::size_t>& numbers,
                                  const Box& box, const std::vector<double>& from);

}  // namespace rnicsim::sim::calibrate

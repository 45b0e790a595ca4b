// What stands for the simulation while a fit searches: numbers whose changes by each parameter alone add up.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rnicsim::sim::calibrate {

// How the numbers change as one parameter alone moves: known at some moves, and straight between and beyond them, each
// side by itself, since what is no bottleneck may become one on one side only. Unmoved it changes nothing.
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
  std::vector<Knot> knots_;  // of each side those further out behind those nearer, none at 0
};

struct Surrogate {
  std::vector<double> start;  // the numbers when nothing has moved
  std::vector<Curve> curves;  // by parameter

  std::vector<double> at(const std::vector<double>& moves) const;
};

// By parameter.
struct Box {
  std::vector<double> low, high;
};

// How far off a number is at a value, in tolerances.
using Off = std::function<double(std::size_t number, double value)>;

// The moves within the box, which holds `from`, with the least sum of squares over `numbers`. A parameter that none of
// them asks for stays where it was: each move costs a little. The same arguments, the same answer.
std::vector<double> least_squares(const Surrogate& surrogate, const Off& off, const std::vector<std::size_t>& numbers,
                                  const Box& box, const std::vector<double>& from);

}  // namespace rnicsim::sim::calibrate

// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/surrogate.h"

#include <algorithm>
#include <cmath>
#include <nlopt.hpp>
#include <utility>

namespace rnicsim::sim::calibrate {
namespace {

// Cost of a move by the whole distance between the bounds: as much as an error of half a tolerance. A parameter with
// little influence on the numbers must not move to a bound, which is no guess of its value.
constexpr double kPull = 0.25;

double square(double value) { return value * value; }

struct Problem {
  const Surrogate& surrogate;
  const Off& off;
  const std::vector<std::size_t>& numbers;

  double cost(const std::vector<double>& moves) const {
    const auto values = surrogate.at(moves);
    double sum = 0;
    for (const auto number : numbers) sum += square(off(number, values[number]));
    for (const double move : moves) sum += kPull * square(move);
    return sum;
  }
};

double cost_of(const std::vector<double>& moves, std::vector<double>& /*gradient*/, void* problem) {
  return static_cast<const Problem*>(problem)->cost(moves);
}

}  // namespace

void Curve::add(double move, std::vector<double> change) {
  const auto further = [&](const Knot& knot) { return std::abs(knot.move) > std::abs(move); };
  knots_.insert(std::ranges::find_if(knots_, further), {move, std::move(change)});
}

bool Curve::knows(double move) const {
  return move == 0 || std::ranges::find(knots_, move, &Knot::move) != knots_.end();
}

void Curve::change(std::vector<double>& numbers, double move) const {
  if (move == 0) return;
  // The last two knots of this side, up to the first that is at least as far as the move. `inner` is null for 0.
  const Knot* inner = nullptr;
  const Knot* outer = nullptr;
  for (const auto& knot : knots_) {
    if ((knot.move < 0) != (move < 0)) continue;
    inner = std::exchange(outer, &knot);
    if (std::abs(knot.move) >= std::abs(move)) break;
  }
  if (outer == nullptr) return;
  const double from = inner != nullptr ? inner->move : 0;
  const double share = (move - from) / (outer->move - from);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double at_inner = inner != nullptr ? inner->change[i] : 0;
    numbers[i] += at_inner + share * (outer->change[i] - at_inner);
  }
}

std::vector<double> Surrogate::at(const std::vector<double>& moves) const {
  auto numbers = start;
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].change(numbers, moves[i]);
  return numbers;
}

// Subplex needs no derivative; a function of straight lines has none at its knots.
std::vector<double> least_squares(const Surrogate& surrogate, const Off& off, const std::vector<std::size_t>& numbers,
                                  const Box& box, const std::vector<double>& from) {
  auto moves = from;
  if (moves.empty()) return moves;
  Problem problem{surrogate, off, numbers};
  nlopt::opt optimiser(nlopt::LN_SBPLX, static_cast<unsigned>(moves.size()));
  optimiser.set_min_objective(cost_of, &problem);
  optimiser.set_lower_bounds(box.low);
  optimiser.set_upper_bounds(box.high);
  constexpr double kExact = 1e-6;
  constexpr int kMostLooks = 200'000;
  optimiser.set_xtol_abs(kExact);
  optimiser.set_maxeval(kMostLooks);
  double least = 0;
  try {
    optimiser.optimize(moves, least);
  } catch (const nlopt::roundoff_limited&) {
    // The result is as exact as doubles allow.
  }
  return moves;
}

}  // namespace rnicsim::sim::calibrate

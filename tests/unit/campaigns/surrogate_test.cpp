// SPDX-License-Identifier: Apache-2.0
// The fit finds the optimum of constructed numbers whose optimum is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "sim/calibrate/surrogate.h"

namespace rnicsim::sim::calibrate {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

using Row = std::vector<double>;

Row times(Row row, double factor) {
  for (auto& number : row) number *= factor;
  return row;
}

// Changes of all numbers for a move of -1 (`down`) and +1 (`up`).
Curve sloping(const Row& down, const Row& up) {
  Curve curve;
  curve.add(0.5, times(up, 0.5));
  curve.add(-0.25, times(down, -0.25));
  return curve;
}

// Curves with the same slope on both sides.
Surrogate straight(Row start, const std::vector<Row>& slopes) {
  Surrogate model{std::move(start), {}};
  for (const auto& slope : slopes) model.curves.push_back(sloping(slope, slope));
  return model;
}

// Every number should equal `expected`; the tolerance is 1.
Off from(Row expected) {
  return [expected = std::move(expected)](std::size_t number, double value) { return value - expected[number]; };
}

std::vector<std::size_t> all_of(const Surrogate& model) {
  std::vector<std::size_t> all(model.start.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Box wide(std::size_t parameters) { return {Row(parameters, -1), Row(parameters, 1)}; }

auto near(double value) { return DoubleNear(value, 0.002); }

TEST(Surrogate, SumsOfWhatEachParameterDoes) {
  const Surrogate model{{10, 20}, {sloping({1, 2}, {3, 4}), sloping({100, 0}, {0, 0})}};
  EXPECT_EQ(model.at({0, 0}), (Row{10, 20}));
  EXPECT_EQ(model.at({1, 0}), (Row{13, 24}));
  EXPECT_EQ(model.at({-1, -0.5}), (Row{10 - 1 - 50, 20 - 2})) << "each side has its own slope";
}

TEST(Surrogate, ACurveGoesThroughWhatIsKnown) {
  Surrogate model{{0}, {Curve()}};
  EXPECT_EQ(model.at({0.3}), Row{0}) << "nothing is known";
  auto& curve = model.curves.front();
  curve.add(0.5, {10});
  curve.add(-0.5, {-1});
  curve.add(0.25, {2});
  const auto at = [&](double move) { return model.at({move}).front(); };
  EXPECT_DOUBLE_EQ(at(0.125), 1);
  EXPECT_DOUBLE_EQ(at(0.25), 2);
  EXPECT_DOUBLE_EQ(at(0.375), 6);
  EXPECT_DOUBLE_EQ(at(0.75), 18) << "beyond them, too";
  EXPECT_DOUBLE_EQ(at(-0.25), -0.5);
  EXPECT_TRUE(curve.knows(0.25) && curve.knows(0));
  EXPECT_FALSE(curve.knows(-0.25));
}

TEST(Surrogate, FindsAnOptimumWithinTheBox) {
  const auto model = straight({0, 0, 0}, {{100, 50, 0}, {0, 80, 100}});
  const auto target = model.at({0.3, -0.4});
  EXPECT_THAT(least_squares(model, from(target), all_of(model), wide(2), {0, 0}), ElementsAre(near(0.3), near(-0.4)));
}

// Contradicting numbers. The sum of squares by hand: (m - 1)^2 + (m - 3)^2 + 2 (m / 10 - 1)^2.
TEST(Surrogate, WeighsWhatContradicts) {
  const auto model = straight({0, 0, 0, 0}, {{10, 10, 1, 1}});
  const auto moves = least_squares(model, from({1, 3, 1, 1}), all_of(model), wide(1), {0});
  EXPECT_THAT(moves, ElementsAre(near(42.0 / 202)));
}

TEST(Surrogate, StopsAtTheBounds) {
  const auto model = straight({0, 0}, {{10, 1}, {1, 10}});
  auto box = wide(2);
  box.high[0] = 0.2;
  const auto moves = least_squares(model, from({5, 5}), all_of(model), box, {0, 0});
  // With the first parameter at 0.2, the optimum of the second follows from (2 + m - 5) + 10 (0.2 + 10 m - 5) = 0.
  EXPECT_THAT(moves, ElementsAre(near(0.2), near(51.0 / 101)));
  box.low[1] = box.high[1] = -0.5;
  EXPECT_THAT(least_squares(model, from({5, 5}), all_of(model), box, {0, -0.5}), ElementsAre(near(0.2), near(-0.5)))
      << "one that may not move at all";
}

TEST(Surrogate, WhatIsHeldOutHasNoSay) {
  const auto model = straight({0, 0, 0}, {{100, 0, 40}, {0, 100, 60}});
  auto target = model.at({0.2, 0.6});
  target[2] = -1000;
  EXPECT_THAT(least_squares(model, from(target), {0, 1}, wide(2), {0, 0}), ElementsAre(near(0.2), near(0.6)));
  const auto pulled = least_squares(model, from(target), all_of(model), wide(2), {0, 0});
  EXPECT_LT(pulled[0], 0) << "it would have had one";
}

TEST(Surrogate, WhatNoNumberAsksForStays) {
  const auto model = straight({0}, {{100}, {0}, {100}});
  EXPECT_THAT(least_squares(model, from({100}), all_of(model), wide(3), {0, 0.5, 0}),
              ElementsAre(near(0.5), near(0), near(0.5)))
      << "two that do the same share it";
}

// A parameter that has no effect on one side offers no improvement there.
TEST(Surrogate, GoesToTheSideThatHelps) {
  const Surrogate model{{0}, {sloping({0}, {100}), sloping({-100}, {0})}};
  const auto moves = least_squares(model, from({60}), all_of(model), wide(2), {0, 0});
  EXPECT_THAT(model.at(moves), ElementsAre(DoubleNear(60, 0.5)));
  EXPECT_THAT(moves, ElementsAre(near(0.3), near(-0.3)));
}

// A sudden change, as of a buffer that holds one piece less.
TEST(Surrogate, StaysOffACliff) {
  Surrogate model = straight({0}, {{0}, {-50}});
  model.curves[0] = sloping({-10}, {500});
  const auto moves = least_squares(model, from({-30}), all_of(model), wide(2), {0, 0});
  EXPECT_THAT(moves, ElementsAre(near(0), near(0.6)));
}

TEST(Surrogate, ManyParametersAndTheSameEveryTime) {
  constexpr std::size_t kParameters = 24;
  std::vector<Row> slopes(kParameters, Row(kParameters + 6));
  Row known;
  for (std::size_t i = 0; i < kParameters; ++i) {
    for (std::size_t number = 0; number < slopes[i].size(); ++number)
      slopes[i][number] = 40 * std::sin(static_cast<double>(1 + i * 7 + number * number));
    known.push_back(0.9 * std::sin(static_cast<double>(i)));
  }
  const auto model = straight(Row(kParameters + 6), slopes);
  const auto target = from(model.at(known));
  const auto moves = least_squares(model, target, all_of(model), wide(kParameters), Row(kParameters));
  double misfit = 0;
  const auto numbers = model.at(moves);
  for (std::size_t i = 0; i < numbers.size(); ++i) misfit += std::pow(target(i, numbers[i]), 2);
  EXPECT_LT(misfit, 0.1);
  EXPECT_EQ(moves, least_squares(model, target, all_of(model), wide(kParameters), Row(kParameters)));
}

}  // namespace
}  // namespace rnicsim::sim::calibrate

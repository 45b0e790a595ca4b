// SPDX-License-Identifier: Apache-2.0
// Policies with their own parameters, as seen by the configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/base/policy_params.h"
#include "sim/config/param_list.h"

namespace rnicsim::policy_choice_test {
namespace {

using testing::ElementsAre;

struct Shape {
  using Make = std::unique_ptr<Shape> (*)(const PolicyParams*);
  virtual ~Shape() = default;
  virtual double area() const = 0;
};

struct SquareParams {
  double side = 2;
  void describe(ParamVisitor& visit) { visit.param("side", side, "length of a side", {0, 100}); }
};
struct Square : Shape {
  explicit Square(const SquareParams& params) : params(params) {}
  double area() const override { return params.side * params.side; }
  const SquareParams& params;
};
struct Point : Shape {
  double area() const override { return 0; }
};

std::unique_ptr<Shape> make_square(const PolicyParams* params) {
  return std::make_unique<Square>(params_as<SquareParams>(*params));
}
std::unique_ptr<Shape> make_point(const PolicyParams*) { return std::make_unique<Point>(); }

const PolicyEntry<Shape> kSquare{"square", make_square, make_policy_params<SquareParams>};
const PolicyEntry<Shape> kPoint{"point", make_point};

struct Params {
  PolicyChoice<Shape> shape{"point"};
  void describe(ParamVisitor& visit) { shape.describe(visit, "kind", "which shape"); }
  double area() const { return make_policy<Shape>(shape.name, shape.params(shape.name))->area(); }
};

std::vector<std::string> paths_of(Params& params) {
  std::vector<std::string> paths;
  const sim::ParamList list(params);
  for (const auto& entry : list.entries()) paths.push_back(entry.path);
  return paths;
}

TEST(PolicyChoice, HasTheNameAndEachPolicysParameters) {
  Params params;
  EXPECT_THAT(paths_of(params), ElementsAre("kind", "square.side"));
}

TEST(PolicyChoice, APolicyIsMadeWithItsParameters) {
  Params params;
  EXPECT_EQ(params.area(), 0);
  const sim::ParamList list(params);
  EXPECT_FALSE(list.find("kind")->assign("square"));
  EXPECT_EQ(params.area(), 4);
  EXPECT_FALSE(list.find("square.side")->assign("3"));
  EXPECT_EQ(params.area(), 9);
}

TEST(PolicyChoice, AnUnknownPolicyOrParameterIsRefused) {
  Params params;
  const sim::ParamList list(params);
  const auto wrong = list.find("kind")->assign("circle");
  ASSERT_TRUE(wrong);
  EXPECT_THAT(*wrong, testing::HasSubstr("point"));
  EXPECT_EQ(list.find("square.radius"), nullptr);
  EXPECT_TRUE(list.find("square.side")->assign("200"));
}

TEST(PolicyChoice, ACopyHasParametersOfItsOwn) {
  Params one;
  Params other = one;
  params_as<SquareParams>(*other.shape.params("square")).side = 5;
  one.shape.name = other.shape.name = "square";
  EXPECT_EQ(one.area(), 4);
  EXPECT_EQ(other.area(), 25);
  one = other;
  params_as<SquareParams>(*other.shape.params("square")).side = 6;
  EXPECT_EQ(one.area(), 25);
}

}  // namespace
}  // namespace rnicsim::policy_choice_test

// SPDX-License-Identifier: Apache-2.0
// Policies by name: only registered policies exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/base/params.h"
#include "model/base/policy.h"
#include "sim/config/param_list.h"

namespace rnicsim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Rounding {
  using Make = std::unique_ptr<Rounding> (*)(int step);
  virtual ~Rounding() = default;
  virtual int of(int number) const = 0;
};

struct Up : Rounding {
  explicit Up(int step) : step_(step) {}
  int of(int number) const override { return (number + step_ - 1) / step_ * step_; }
  const int step_;
};
struct Down : Rounding {
  explicit Down(int step) : step_(step) {}
  int of(int number) const override { return number / step_ * step_; }
  const int step_;
};

const PolicyEntry<Rounding> kUp{"up", [](int step) -> std::unique_ptr<Rounding> { return std::make_unique<Up>(step); }};
const PolicyEntry<Rounding> kDown{"down",
                                  [](int step) -> std::unique_ptr<Rounding> { return std::make_unique<Down>(step); }};

struct Nothing {
  using Make = std::unique_ptr<Nothing> (*)();
};

struct Params {
  std::string rounding = "down";

  void describe(ParamVisitor& visit) {
    visit.param("rounding", rounding, "where numbers go", policy_names<Rounding>());
  }
};

TEST(Policies, AreNamedInTheAlphabetsOrder) { EXPECT_THAT(policy_names<Rounding>(), ElementsAre("down", "up")); }

TEST(Policies, AreMadeByNameWithTheirArguments) {
  EXPECT_EQ(make_policy<Rounding>("down", 4)->of(7), 4);
  EXPECT_EQ(make_policy<Rounding>("up", 4)->of(7), 8);
  EXPECT_THROW(make_policy<Rounding>("u", 4), std::out_of_range);
}

TEST(Policies, OfAnotherKindAreOthers) { EXPECT_THAT(policy_names<Nothing>(), IsEmpty()); }

TEST(Policies, ANameThatNoneHasIsRefusedWithThoseThereAre) {
  Params params;
  const sim::ParamList list(params);
  EXPECT_EQ(list.find("rounding")->assign("sideways"), "'sideways' is none of down, up");
  EXPECT_EQ(list.find("rounding")->assign("up"), std::nullopt);
  EXPECT_EQ(params.rounding, "up");
}

TEST(Policies, TwoOfANameAreAMistake) {
  struct Twin {
    using Make = int (*)();
  };
  static const PolicyEntry<Twin> one{"same", [] { return 1; }};
  static const PolicyEntry<Twin> other{"same", [] { return 2; }};
  EXPECT_THROW(policy_names<Twin>(), std::logic_error);
}

}  // namespace
}  // namespace rnicsim

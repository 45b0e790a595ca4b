// SPDX-License-Identifier: Apache-2.0
// The pool gives each index once, from the first gap that is large enough, and merges adjacent gaps.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "model/host/memory/range_pool.h"

namespace rnicsim::host {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

// The first run of `count` free indices, by a linear search.
std::optional<std::uint32_t> first_fit(const std::vector<bool>& used, std::uint32_t count) {
  for (std::size_t first = 0; first + count <= used.size(); ++first) {
    const auto begin = used.begin() + std::ptrdiff_t(first);
    if (std::find(begin, begin + count, true) == begin + count) return static_cast<std::uint32_t>(first);
  }
  return std::nullopt;
}

RC_GTEST_PROP(RangePool, IsFirstFitAndForgetsNothing, ()) {
  const auto size = *rc::gen::inRange<std::uint32_t>(1, 200);
  RangePool pool(size);
  std::vector<bool> used(size);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken;
  const auto give_back = [&](std::size_t which) {
    const auto [first, count] = taken[which];
    pool.give_back(first, count);
    std::fill_n(used.begin() + first, count, false);
    taken.erase(taken.begin() + std::ptrdiff_t(which));
  };
  for (const auto step : *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 1000))) {
    if (step % 2 == 0 && !taken.empty()) {
      give_back(step / 2 % taken.size());
      continue;
    }
    const std::uint32_t count = 1 + step % (size / 4 + 2);
    const auto first = pool.take(count);
    RC_ASSERT(first == first_fit(used, count));
    if (!first) continue;
    std::fill_n(used.begin() + *first, count, true);
    taken.emplace_back(*first, count);
  }
  while (!taken.empty()) give_back(taken.size() / 2);
  RC_ASSERT(pool.take(size) == std::optional<std::uint32_t>(0));
}

TEST(RangePool, NothingAndTooMuch) {
  RangePool pool(4);
  EXPECT_EQ(pool.take(0), 0u);
  EXPECT_EQ(pool.take(5), std::nullopt);
  EXPECT_EQ(pool.take(4), 0u);
  EXPECT_EQ(pool.take(0), 0u);
  pool.give_back(0, 0);
  EXPECT_EQ(pool.take(1), std::nullopt);
  EXPECT_EQ(RangePool().take(1), std::nullopt);
  RangePool whole(~0u);
  EXPECT_EQ(whole.take(~0u), 0u);
  whole.give_back(0, ~0u);
  EXPECT_EQ(whole.take(~0u), 0u);
}

// Indices before an aligned range stay available, and every range is aligned.
TEST(RangePool, MayBeAligned) {
  RangePool pool(16);
  EXPECT_EQ(pool.take(1), 0u);
  EXPECT_EQ(pool.take(2, 4), 4u);
  EXPECT_EQ(pool.take(3, 1), 1u);
  EXPECT_EQ(pool.take(1, 16), std::nullopt);
  EXPECT_EQ(pool.take(9, 8), std::nullopt);
  EXPECT_EQ(pool.take(8, 8), 8u);
  EXPECT_EQ(pool.take(1, 1ull << 40), std::nullopt);
  pool.give_back(0, 1);
  EXPECT_EQ(pool.take(1, 1ull << 40), 0u);
  EXPECT_EQ(pool.take(2, 2), 6u);
  EXPECT_EQ(pool.take(1), std::nullopt);
}

}  // namespace
}  // namespace rnicsim::host

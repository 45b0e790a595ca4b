// SPDX-License-Identifier: Apache-2.0
// Percentiles equal those of the sorted values within 1/256, and means are exact.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/results/histogram.h"

namespace rnicsim::sim {
namespace {

// Durations of all magnitudes.
rc::Gen<std::int64_t> durations() {
  return rc::gen::map(
      rc::gen::pair(rc::gen::inRange(0, 62), rc::gen::arbitrary<std::uint64_t>()),
      [](const auto& drawn) { return static_cast<std::int64_t>(drawn.second >> (63 - drawn.first) >> 1); });
}

TEST(Histograms, PercentilesOfAnyValues) {
  EXPECT_TRUE(rc::check([] {
    auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(durations()));
    Histogram histogram;
    for (const auto value : values) histogram.add({value});
    std::ranges::sort(values);
    RC_ASSERT(histogram.count() == values.size());
    RC_ASSERT(histogram.least().ps == values.front());
    RC_ASSERT(histogram.most().ps == values.back());
    __extension__ using Wide = __int128;
    const auto sum = std::accumulate(values.begin(), values.end(), Wide{0});
    const auto count = static_cast<Wide>(values.size());
    RC_ASSERT(histogram.mean().ps == static_cast<std::int64_t>((sum + count / 2) / count));
    for (const double share : {0.0, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = std::max(1.0, std::ceil(share * static_cast<double>(values.size())));
      const auto exact = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
      const auto found = static_cast<double>(histogram.percentile(share).ps);
      RC_ASSERT(std::abs(found - exact) <= exact / 256 + 0.5);
    }
  }));
}

TEST(Histograms, Empty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.percentile(0.5), Duration{});
  EXPECT_EQ(histogram.least(), Duration{});
  EXPECT_EQ(histogram.mean(), Duration{});
}

TEST(Histograms, EdgesOfTime) {
  Histogram histogram;
  histogram.add({INT64_MAX});
  histogram.add({-1});  // negative durations do not occur
  EXPECT_EQ(histogram.least(), Duration{});
  EXPECT_EQ(histogram.most(), Duration{INT64_MAX});
}

TEST(Histograms, ExactWhereValuesAreEqual) {
  Histogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.add({1'387'873});
  histogram.add({5'000'000'000});
  const auto spread = histogram.spread();
  EXPECT_EQ(spread.count, 1001u);
  EXPECT_EQ(spread.p50, Duration{1'387'873});
  EXPECT_EQ(spread.p99, Duration{1'387'873});
  EXPECT_EQ(spread.least, Duration{1'387'873});
  EXPECT_EQ(spread.most, Duration{5'000'000'000});
  EXPECT_EQ(spread.sum, Duration{1000 * 1'387'873ll + 5'000'000'000});
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Detection of a steady rate, and its confidence.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/bench/results/batches.h"
#include "sim/bench/results/confidence.h"
#include "sim/bench/results/steadiness.h"

namespace rnicsim::sim::bench {
namespace {

using namespace rnicsim::literals;
using Counts = std::vector<std::uint64_t>;

TEST(Batches, GrowLongerAndStayFew) {
  Batches batches(1_us);
  for (int i = 0; i < 100'000; ++i) batches.add(1_us + i * 100_ns, 2);
  batches.add(900_ns, 7);  // before the first batch
  const auto counts = batches.until(1_us + 10_ms);
  EXPECT_LE(counts.size(), Batches::kMost);
  EXPECT_GE(counts.size(), Batches::kMost / 2);
  const auto length = batches.length_until(1_us + 10_ms);
  EXPECT_EQ(length.ps % Batches::kShortest.ps, 0);
  std::uint64_t sum = 0;
  for (const auto count : counts) {
    EXPECT_NEAR(double(count), 2 * double(length.ps) / 1e5, 2);
    sum += count;
  }
  EXPECT_GT(sum, 199'000u);
}

// The last, incomplete batch is left out; without operations there are no batches.
TEST(Batches, WholeOnesOnly) {
  Batches batches;
  batches.add(15_ns, 3);
  EXPECT_EQ(batches.until(9_ns), Counts{});
  EXPECT_EQ(batches.until(20_ns), (Counts{0, 3}));
  EXPECT_EQ(batches.until(49_ns), (Counts{0, 3, 0, 0}));
  EXPECT_EQ(Batches(1_us).until(1_us), Counts{});
}

// The sum of batches from several processes equals those of a single process, however far each process has run.
TEST(Batches, AddUp) {
  Batches one, first, second;
  for (int i = 0; i < 5000; ++i) {
    one.add(i * 7_ns, 1);
    (i % 3 == 0 && i < 2000 ? first : second).add(i * 7_ns, 1);
  }
  std::vector<std::byte> message;
  ByteWriter out(message);
  second.put(out);
  ByteReader in(message);
  first.add(Batches::take(in));
  EXPECT_EQ(first.until(35_us), one.until(35_us));
  EXPECT_TRUE(in.at_end());
}

// 400 counts near `rate`; counts before `from` come from `early`.
template <class Early>
Counts series(double rate, std::size_t from, Early&& early, double noise = 0.05) {
  std::mt19937_64 generator(3);
  Counts counts;
  for (std::size_t i = 0; i < 400; ++i) {
    const double random = double(generator() % 2001) / 1000 - 1;
    counts.push_back(std::uint64_t(std::lround((i < from ? early(i) : rate) * (1 + noise * random))));
  }
  return counts;
}
double nothing(std::size_t) { return 0; }

TEST(Steadiness, Mser5CutsWhatIsAnother) {
  EXPECT_NEAR(double(mser5_truncation(series(1000, 100, nothing))), 105, 5);
  EXPECT_EQ(mser5_truncation(Counts(400, 7)), 0u);
  EXPECT_EQ(mser5_truncation({}), 0u);
  EXPECT_LT(mser5_truncation(series(1000, 0, nothing)), 100u);
  EXPECT_NEAR(double(mser5_truncation(series(1000, 300, nothing))), 305, 5);
  // Equal counts at the end alone must not decide: without them, the error of the rest is least after the second mean.
  Counts few{0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 40; ++i) few.push_back(i % 2 == 0 ? 9 : 11);
  for (std::size_t i = 0; i < 20; ++i) few.push_back(10);
  EXPECT_EQ(mser5_truncation(few), 10u);
}

TEST(Steadiness, SettlesInTheFirstHalf) {
  EXPECT_TRUE(has_settled(series(1000, 150, nothing)));
  EXPECT_FALSE(has_settled(series(1000, 210, nothing)));
  EXPECT_FALSE(has_settled(series(1000, 400, [](auto i) { return 500 + double(i); })));
  // A rise of 1/200 is no trend, even without noise.
  EXPECT_TRUE(has_settled(series(
      100'000, 400, [](auto i) { return 100'000 + double(i); }, 0)));
  EXPECT_FALSE(has_settled(Counts(9, 1)));
}

// With very few or regular counts, equal counts at the end mean nothing.
TEST(Steadiness, OfFewAndOfRegularOnes) {
  Counts rare(1600), regular;
  std::mt19937_64 generator(5);
  for (int i = 0; i < 300; ++i) ++rare[generator() % rare.size()];
  for (std::size_t i = 0; i < 1600; ++i) regular.push_back(i % 33 == 0 ? 3 : 4);
  for (const auto& counts : {rare, regular}) {
    EXPECT_TRUE(has_settled(counts));
    EXPECT_EQ(steadiness_of(counts, 0.01).steady, true);
  }
}

TEST(Steadiness, MannAndKendall) {
  std::vector<double> rising, alternating, equal(20, 3.0);
  for (int i = 0; i < 20; ++i) {
    rising.push_back(i);
    alternating.push_back(i % 2);
  }
  EXPECT_TRUE(has_trend(rising, 0.01));
  EXPECT_TRUE(has_trend({rising.rbegin(), rising.rend()}, 0.01));
  EXPECT_FALSE(has_trend(alternating, 0.01));
  EXPECT_FALSE(has_trend(equal, 0.01));
  // Five rising values have the score 2.2: significant at 5 %, not at 1 %.
  EXPECT_FALSE(has_trend({1, 2, 3, 4, 5}, 0.01));
  EXPECT_TRUE(has_trend({1, 2, 3, 4, 5}, 0.05));
}

TEST(Steadiness, OfAnInterval) {
  const auto steady = steadiness_of(series(1000, 0, nothing), 0.01);
  EXPECT_EQ(steady.steady, true);
  EXPECT_LT(*steady.reach, 0.01);
  EXPECT_NEAR(steady.drift, 0, 0.01);
  const auto late = steadiness_of(series(1000, 60, nothing), 0.01);
  EXPECT_EQ(late.steady, false);
  EXPECT_NEAR(late.truncation, 0.17, 0.05);
  const auto rising = steadiness_of(series(1000, 400, [](auto i) { return 900 + double(i) / 4; }), 0.01);
  EXPECT_EQ(rising.steady, false);
  EXPECT_NEAR(rising.drift, 0.05, 0.01);
  for (const auto& few : {Counts{}, Counts(39, 100), Counts(400, 0), Counts(99, 1)})
    EXPECT_EQ(steadiness_of(few, 0.01).steady, std::nullopt);
  EXPECT_EQ(steadiness_of(Counts(100, 1), 0.01).steady, true);
}

TEST(Confidence, OfStudent) {
  const auto known = interval_of({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(known.mean, 3);
  EXPECT_NEAR(known.high - known.mean, 2.776 * std::sqrt(2.5 / 5), 1e-3);
  EXPECT_EQ(known.count, 5u);
  EXPECT_EQ(interval_of({4}).high, 4);
}

}  // namespace
}  // namespace rnicsim::sim::bench

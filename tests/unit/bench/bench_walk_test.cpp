// SPDX-License-Identifier: Apache-2.0
// Target places of an agent's operations, and their frequencies.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/bench/agents/walk.h"

namespace rnicsim::sim::bench {
namespace {

using namespace rnicsim::literals;

class BenchWalk : public testing::Test {
 protected:
  BenchWalk() { flow_.mix = {{.op = Op::read, .size = 60_B}}; }

  // Number of visits of each place in two regions of 1 KiB.
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> gone_to(int times, std::uint64_t begin = 0) {
    const Walk walk(flow_, 1_KiB, regions_);
    std::map<std::pair<std::uint32_t, std::uint64_t>, int> counts;
    auto place = walk.target(begin);
    for (int i = 0; i < times; ++i) {
      ++counts[{place.region, place.offset}];
      EXPECT_LE(place.offset + 60, 1024u);
      if (walk.moves()) walk.advance(place, generator_);
    }
    return counts;
  }

  Flow flow_;
  std::vector<Region> regions_{{0, 1, 2}, {4096, 3, 4}};
  Generator generator_{7};
};

TEST_F(BenchWalk, FixedAndOne) {
  const Walk walk(flow_, 1_KiB, regions_);
  EXPECT_EQ(walk.first(17).offset, 64u);
  EXPECT_EQ(walk.first(17).region, 1u);
  EXPECT_EQ(walk.first(32).region, 0u);
  EXPECT_EQ(walk.target(17).offset, 64u);
  flow_.address = Addressing::one;
  const Walk one(flow_, 1_KiB, regions_);
  EXPECT_FALSE(one.moves());
  EXPECT_EQ(one.first(17).offset, 64u);
  EXPECT_EQ(one.target(17).offset, 0u);
  EXPECT_EQ(one.target(17).region, 0u);
}

TEST_F(BenchWalk, OnAndOn) {
  flow_.address = Addressing::sequential;
  EXPECT_EQ(gone_to(32).size(), 32u);
  EXPECT_EQ(gone_to(64).begin()->second, 2);
  flow_.address = Addressing::stride;
  flow_.stride = 256_B;
  EXPECT_EQ(gone_to(80).size(), 8u);
}

TEST_F(BenchWalk, RandomPlacesAndSlots) {
  flow_.address = Addressing::random;
  EXPECT_EQ(gone_to(2000).size(), 32u);
  flow_.address = Addressing::slots;
  flow_.slots = 20;
  const auto slots = gone_to(20'000, 25);  // starts among the slots, too
  EXPECT_EQ(slots.size(), 20u);
  EXPECT_EQ(slots.rbegin()->first, (std::pair<std::uint32_t, std::uint64_t>(1, 3 * 64)));
  for (const auto& [place, count] : slots) EXPECT_NEAR(count, 1000, 150);
  flow_.slots = 3;
  flow_.stride = 512_B;
  EXPECT_EQ(gone_to(100).rbegin()->first, (std::pair<std::uint32_t, std::uint64_t>(1, 0)));
}

// Frequencies follow Zipf's law; places are far apart, and the same for all agents.
TEST_F(BenchWalk, HotPlaces) {
  flow_.address = Addressing::zipf;
  flow_.zipf = 0.99;
  const auto counts = gone_to(100'000);
  EXPECT_EQ(counts.size(), 32u);
  std::vector<std::pair<int, std::uint64_t>> hottest;
  for (const auto& [place, count] : counts) hottest.emplace_back(count, place.first * 1024 + place.second);
  std::ranges::sort(hottest, std::ranges::greater{});
  double sum = 0;
  for (int k = 1; k <= 32; ++k) sum += std::pow(k, -0.99);
  for (int k = 1; k <= 32; ++k)
    EXPECT_NEAR(hottest[std::size_t(k - 1)].first, 1e5 * std::pow(k, -0.99) / sum, 250) << k;
  EXPECT_GT(std::max(hottest[0].second, hottest[1].second) - std::min(hottest[0].second, hottest[1].second), 128u);
  generator_.seed(8);
  const auto others = gone_to(100'000);
  EXPECT_GT(others.at({0, 0}), 20'000);
  EXPECT_GT(counts.at({0, 0}), 20'000);
}

TEST_F(BenchWalk, ZipfOfAnyCountAndExponent) {
  for (const double exponent : {0.01, 1.0, 10.0})
    for (const std::uint64_t count : {1ull, 2ull, 1000ull, 1ull << 37}) {
      const Zipf zipf(count, exponent);
      std::set<std::uint64_t> drawn;
      for (int i = 0; i < 1000; ++i) drawn.insert(zipf.draw(generator_));
      EXPECT_LT(*drawn.rbegin(), count);
      if (exponent > 1) {
        EXPECT_LT(drawn.size(), 5u);
        EXPECT_EQ(*drawn.begin(), 0u);
      } else if (count > 1'000'000 && exponent < 1) {
        EXPECT_GT(drawn.size(), 990u);
      }
    }
}

}  // namespace
}  // namespace rnicsim::sim::bench

// SPDX-License-Identifier: Apache-2.0
// Histograms of a switch's port: queue lengths weighted by time, and lengths of pauses.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "model/fabric/port_histograms.h"

namespace rnicsim::fabric::histograms_test {
namespace {

using namespace rnicsim::literals;

double sum_of_shares(const QueueLengths& lengths) {
  double sum = 0;
  for (const auto& part : lengths.parts()) sum += part.share;
  return sum;
}

TEST(QueueLengths, PartsArePowersOfTwo) {
  QueueLengths lengths;
  lengths.add(0, 50_ns);
  lengths.add(1, 10_ns);
  lengths.add(1023, 10_ns);
  lengths.add(1024, 10_ns);
  lengths.add(2047, 5_ns);
  lengths.add(2048, 5_ns);
  lengths.add((1ull << 40) + 1, 10_ns);
  lengths.add(77, 0_ns);
  const auto parts = lengths.parts();
  ASSERT_EQ(parts.size(), 5u);
  const std::vector<std::uint64_t> from{0, 1, 1024, 2048, 1ull << 40}, below{1, 1024, 2048, 4096, 1ull << 41};
  const std::vector<double> shares{0.5, 0.2, 0.15, 0.05, 0.1};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].from, from[i]);
    EXPECT_EQ(parts[i].below, below[i]);
    EXPECT_DOUBLE_EQ(parts[i].share, shares[i]);
  }
  EXPECT_DOUBLE_EQ(sum_of_shares(lengths), 1);
  EXPECT_EQ(lengths.time(), 100_ns);
}

TEST(QueueLengths, EachLengthIsInAPartThatHoldsIt) {
  for (std::uint64_t bytes = 0; bytes < 1ull << 33; bytes = bytes + 1 + bytes / 37) {
    QueueLengths lengths;
    lengths.add(bytes, 1_us);
    const auto parts = lengths.parts();
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_TRUE(parts[0].from <= bytes && bytes < parts[0].below) << bytes;
    EXPECT_EQ(lengths.percentile(0.5), static_cast<double>(bytes));
    EXPECT_EQ(lengths.mean(), static_cast<double>(bytes));
    EXPECT_EQ(lengths.was_filled(), bytes != 0);
  }
}

TEST(QueueLengths, PercentilesCountTime) {
  QueueLengths lengths;
  EXPECT_EQ(lengths.percentile(0.5), 0);
  EXPECT_EQ(lengths.mean(), 0);
  lengths.add(0, 500_ns);
  lengths.add(4178, 480_ns);
  lengths.add(100'000, 20_ns);
  EXPECT_EQ(lengths.percentile(0.5), 0);
  EXPECT_EQ(lengths.percentile(0.500001), 4178);
  EXPECT_EQ(lengths.percentile(0.98), 4178);
  EXPECT_EQ(lengths.percentile(0.99), 100'000);
  EXPECT_EQ(lengths.percentile(1), 100'000);
  EXPECT_DOUBLE_EQ(lengths.mean(), 0.48 * 4178 + 0.02 * 100'000);
  // Lengths within one bin (an eighth of an octave) are averaged by time.
  QueueLengths near;
  near.add(4096, 1_us);
  near.add(4600, 3_us);
  EXPECT_DOUBLE_EQ(near.percentile(0.01), (4096 + 3 * 4600) / 4.0);
}

TEST(QueueLengths, GrowthIsThatOfTheTimeBetween) {
  QueueLengths lengths;
  lengths.add(5000, 1_us);
  lengths.add(0, 1_us);
  const auto before = lengths;
  lengths.add(5000, 2_us);
  lengths.add(1'000'000, 2_us);
  const auto growth = lengths.since(before);
  EXPECT_EQ(growth.time(), 4_us);
  EXPECT_EQ(growth.mean(), 502'500);
  EXPECT_EQ(growth.percentile(0.5), 5000);
  ASSERT_EQ(growth.parts().size(), 2u);
  EXPECT_DOUBLE_EQ(sum_of_shares(growth), 1);
  EXPECT_TRUE(lengths.since(lengths).parts().empty());
}

TEST(PauseTimes, AreCountedByPowersOfTwo) {
  PauseTimes times;
  for (const auto time : {0_us, 999_ns, 1_us, 1999_ns, 2_us, 1000_us}) times.add(time);
  const auto before = times;
  times.add(3_us);
  EXPECT_EQ(times.count(), 7u);
  const auto parts = times.parts();
  ASSERT_EQ(parts.size(), 4u);
  const std::vector<std::uint64_t> from{0, 1, 2, 512}, below{1, 2, 4, 1024}, counts{2, 2, 2, 1};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].from_us, from[i]);
    EXPECT_EQ(parts[i].below_us, below[i]);
    EXPECT_EQ(parts[i].count, counts[i]);
  }
  EXPECT_EQ(times.since(before).count(), 1u);
}

TEST(PortRecord, LengthsGoOnUntilNow) {
  PortRecord record;
  record.length(3, 1000, 10_us);
  record.length(3, 0, 30_us);
  record.length(3, 500, 70_us);
  const auto histograms = record.at(80_us);
  EXPECT_EQ(histograms.lengths[3].time(), 80_us);
  EXPECT_DOUBLE_EQ(histograms.lengths[3].mean(), (20 * 1000 + 10 * 500) / 80.0);
  EXPECT_EQ(histograms.lengths[0].time(), 80_us);
  EXPECT_FALSE(histograms.lengths[0].was_filled());
  EXPECT_EQ(record.at(90_us).lengths[3].time(), 90_us);  // reading changes nothing
}

TEST(PortRecord, APauseEndsByItselfOrByAnother) {
  PortRecord record;
  const auto count = [&](Duration now) { return record.at(now).pauses[3].count(); };
  record.pause(3, 10_us, 0_us);
  EXPECT_EQ(count(9_us), 0u);
  EXPECT_EQ(count(10_us), 1u);
  record.pause(3, 40_us, 20_us);
  record.pause(3, 60_us, 35_us);  // extends the pause
  record.pause(3, 50_us, 50_us);  // ends the pause
  record.pause(3, 55_us, 55_us);  // no pause was active
  record.pause(4, 99_us, 50_us);
  const auto pauses = record.at(90_us).pauses;
  ASSERT_EQ(pauses[3].parts().size(), 2u);
  EXPECT_EQ(pauses[3].parts()[0].from_us, 8u);   // 10 us
  EXPECT_EQ(pauses[3].parts()[1].from_us, 16u);  // 30 us
  EXPECT_EQ(pauses[4].count(), 0u);
}

TEST(PortRecord, GoesToAnotherProcess) {
  PortRecord record;
  record.length(1, 3000, 1_us);
  record.pause(2, 5_us, 2_us);
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  record.at(9_us).put(out);
  ByteReader in(bytes);
  const auto taken = PortHistograms::take(in);
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(taken.lengths[1].percentile(0.99), 3000);
  EXPECT_EQ(taken.lengths[1].time(), 9_us);
  EXPECT_EQ(taken.pauses[2].count(), 1u);
}

}  // namespace
}  // namespace rnicsim::fabric::histograms_test

// SPDX-License-Identifier: Apache-2.0
// The level `statistical`: numbers that differ, numbers that remain undecided, and the format of the file.
#include <gmock/gmock.h>

#include "sim/check/statistics.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check::statistics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::Throws;

constexpr auto kRate = "h0.messages_per_s", kLatency = "h0.qp[0x41].RDMA_WRITE.latency_ps.p99";

Statistics of(const std::string& name, const std::vector<double>& values) {
  Statistics statistics;
  statistics.header.program = "1";
  for (std::size_t i = 0; i < values.size(); ++i) statistics.seeds[i + 1][name] = values[i];
  return statistics;
}

ExpectedStatistics rules(double tolerance = 0.02) {
  ExpectedStatistics rules;
  rules.seeds = {1, 2, 3, 4, 5};
  rules.tolerance = {0, tolerance};
  return rules;
}

const std::vector<double> kBefore{1000, 1010, 990, 1005, 995};

std::vector<double> scaled(double by, const std::vector<double>& noise = {0, 0, 0, 0, 0}) {
  auto values = kBefore;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] * by + noise[i];
  return values;
}

TEST(Statistics, EqualRunsDoNotDiffer) {
  const auto difference = compare_statistics(rules(0), of(kRate, kBefore), of(kRate, kBefore));
  EXPECT_THAT(difference.lines, IsEmpty());
  EXPECT_EQ(difference.compared, 1);
  EXPECT_EQ(difference.undecided, 0);
}

TEST(Statistics, ADifferenceBeyondTheTolerance) {
  const auto difference = compare_statistics(rules(), of(kRate, kBefore), of(kRate, scaled(1.1, {3, -2, 1, -1, 2})));
  ASSERT_EQ(difference.lines.size(), 1);
  EXPECT_THAT(difference.lines[0], StartsWith("h0.messages_per_s: +10.1 % (1000 | 1100.6, mean of 5 seeds); the "
                                              "difference is within +9.8"));
  EXPECT_THAT(difference.lines[0], HasSubstr(" %, the tolerance is 2 %"));
}

TEST(Statistics, WithinTheTolerance) {
  const auto difference = compare_statistics(rules(), of(kRate, kBefore), of(kRate, scaled(1.01)));
  EXPECT_THAT(difference.lines, IsEmpty());
  EXPECT_EQ(difference.undecided, 0);
}

// The mean is outside of the tolerance, and its interval reaches inside.
TEST(Statistics, NoiseDecidesNothing) {
  const auto difference =
      compare_statistics(rules(), of(kRate, kBefore), of(kRate, scaled(1.03, {60, -60, 50, -50, 10})));
  EXPECT_THAT(difference.lines, IsEmpty());
  EXPECT_EQ(difference.undecided, 1);
}

// With more numbers each has a wider interval: the probability of any error stays the same.
TEST(Statistics, AllNumbersShareTheConfidence) {
  auto before = of(kRate, kBefore), now = of(kRate, scaled(1.03, {7, -7, 5, -5, 1}));
  EXPECT_EQ(compare_statistics(rules(), before, now).lines.size(), 1);
  for (auto* side : {&before, &now})
    for (auto& [seed, numbers] : side->seeds)
      for (int i = 0; i < 100; ++i) numbers["h1.qp[" + std::to_string(i) + "].messages_per_s"] = 1;
  const auto difference = compare_statistics(rules(), before, now);
  EXPECT_THAT(difference.lines, IsEmpty());
  EXPECT_EQ(difference.compared, 101);
  auto chosen = rules();
  chosen.values = {"h0.*"};
  EXPECT_EQ(compare_statistics(chosen, before, now).lines.size(), 1) << "a case may choose some";
}

TEST(Statistics, ANumberThatIsThereNoMore) {
  auto now = of(kLatency, kBefore);
  now.seeds[3].clear();
  EXPECT_THAT(compare_statistics(rules(), of(kLatency, kBefore), now).lines,
              ElementsAre(HasSubstr("1 of the seeds; new for 0 of the seeds")));
}

TEST(Statistics, SomeMayDifferMore) {
  auto loose = rules();
  loose.may_differ = {{"h0.*", Margin{0, 0.2}}};
  const auto now = of(kRate, scaled(1.1));
  EXPECT_THAT(compare_statistics(loose, of(kRate, kBefore), now).lines, IsEmpty());
  loose.may_differ.push_back({kRate, Margin{0, 0.05}});
  EXPECT_THAT(compare_statistics(loose, of(kRate, kBefore), now).lines, Not(IsEmpty()));
  loose.may_differ.push_back({kRate, std::nullopt});
  EXPECT_THAT([&] { compare_statistics(loose, of(kRate, kBefore), now); }, Throws<ConfigError>()) << "none is left";
}

TEST(Statistics, CountsAreNoStatistics) {
  EXPECT_TRUE(is_statistic(kRate));
  EXPECT_TRUE(is_statistic(kLatency));
  EXPECT_FALSE(is_statistic("events.cqe"));
  EXPECT_FALSE(is_statistic("end_ps"));
}

TEST(Statistics, AsAFile) {
  auto statistics = of(kRate, kBefore);
  statistics.header.time = "sim";
  statistics.header.hosts = {"h0", "h1"};
  statistics.header.commands = {"h0: a"};
  statistics.header.configuration = {{"nic.tx.latency", "170 ns"}};
  statistics.seeds[1]["events.cqe"] = 7;
  const auto text = statistics_json(statistics).dump(2);
  const auto read = parse_statistics(text);
  ASSERT_TRUE(read);
  statistics.seeds[1].erase("events.cqe");
  EXPECT_EQ(read->seeds, statistics.seeds);
  EXPECT_EQ(read->header.configuration, statistics.header.configuration);
  for (std::size_t size = 0; size + 1 < text.size(); ++size) EXPECT_FALSE(parse_statistics(text.substr(0, size)));
  for (const char* wrong : {"{}", "[]", R"({"schema": 2})", R"({"schema": 1, "program": 1})"})
    EXPECT_FALSE(parse_statistics(wrong)) << wrong;
}

}  // namespace
}  // namespace rnicsim::sim::check::statistics_test

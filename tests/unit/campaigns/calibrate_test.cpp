// SPDX-License-Identifier: Apache-2.0
// Verdicts of `rnicsim calibrate`, and its sensitivity analysis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/bench/bench.h"
#include "sim/calibrate/estimates.h"
#include "sim/calibrate/nic_rows.h"
#include "sim/calibrate/row.h"
#include "sim/calibrate/sensitivity.h"
#include "sim/calibrate/verdict.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"

namespace rnicsim::sim::calibrate {
namespace {

using namespace rnicsim::literals;
using testing::Optional;

Check check_of(double low, double high, std::string argued = {}) {
  return {"", (low + high) / 2, low, high, "", {}, std::move(argued)};
}

TEST(Calibrate, Verdicts) {
  const auto check = check_of(1, 2);
  for (const double good : {1.05, 1.5, 1.95}) EXPECT_EQ(verdict_on(check, good), Verdict::pass) << good;
  for (const double near : {1.0, 1.049, 1.951, 2.0}) EXPECT_EQ(verdict_on(check, near), Verdict::near_edge) << near;
  for (const double bad : {0.999, 2.001}) {
    EXPECT_EQ(verdict_on(check, bad), Verdict::fail) << bad;
    EXPECT_EQ(verdict_on(check_of(1, 2, "docs"), bad), Verdict::argued) << bad;
  }
  EXPECT_EQ(verdict_on(check_of(15, kMuch), 15.5), Verdict::near_edge);
  EXPECT_EQ(verdict_on(check_of(15, kMuch), 32), Verdict::pass);
  EXPECT_TRUE(is_within(Verdict::near_edge));
  EXPECT_FALSE(is_within(Verdict::argued));
}

TEST(Calibrate, WhatIsExpectedIsWithinItsTolerance) {
  for (const auto& row : all_rows())
    for (const auto& check : row.checks) {
      EXPECT_LE(check.low, check.expected) << row.id << ", " << check.what;
      EXPECT_GE(check.high, check.expected) << row.id << ", " << check.what;
    }
}

TEST(Calibrate, HowFarOff) {
  const auto even = check_of(1, 2);
  EXPECT_NEAR(tolerances_off(even, 1.5), 0, 1e-12);
  EXPECT_NEAR(tolerances_off(even, 1), -1, 1e-12);
  EXPECT_NEAR(tolerances_off(even, 3), 3, 1e-12);
  Check range = check_of(1, 2);
  range.expected = 1.2;
  for (const double inside : {1.0, 1.3, 2.0}) EXPECT_EQ(tolerances_off(range, inside), 0) << inside;
  EXPECT_NEAR(tolerances_off(range, 2.5), 1, 1e-12);
  EXPECT_NEAR(tolerances_off(range, 0.75), -0.5, 1e-12);
  Check open = check_of(15, kMuch);
  open.expected = 15;
  EXPECT_EQ(tolerances_off(open, 1000), 0);
  EXPECT_NEAR(tolerances_off(open, 13.5), -1, 1e-12);
}

// A row with several NICs names the NIC of each number.
TEST(Calibrate, EachNumberIsOfOneNic) {
  for (const auto& row : all_rows()) {
    std::set<std::string> nics, named;
    for (const auto& point : row.points) nics.insert(prepared(point).workload.nic);
    for (const auto& check : row.checks)
      if (!check.nic.empty()) named.insert(check.nic);
    EXPECT_EQ(named, nics.size() > 1 ? nics : std::set<std::string>()) << row.id;
    if (nics.size() < 2) continue;
    for (const auto& check : row.checks) EXPECT_NE(check.nic, "") << row.id << ", " << check.what;
  }
}

TEST(Calibrate, RowsOfANic) {
  const NicRows own("cx3-40g", all_rows());
  ASSERT_EQ(own.rows().size(), 2);
  EXPECT_EQ(own.rows()[0].row.id, "CAL-2");
  EXPECT_EQ(own.rows()[0].points.size(), 7);
  ASSERT_EQ(own.rows()[0].row.checks.size(), 1);
  EXPECT_EQ(own.rows()[1].first_number, 1);
  const auto numbers = own.run({{{}, {0}}, {{"nic.pcie.read_internal=180ns"}, {0}}}, 2);
  EXPECT_GT(numbers[1][0] - numbers[0][0], 0.1) << "the step is a read of the payload, and more";
}

TEST(Calibrate, WhatHostsDoNotAgreeAboutIsNotSearched) {
  const Row row{"CAL-0", "", {{"a", "cal-1", {}}, {"b", "cal-1", {"host=xeon-gen4"}}}, {}};
  const auto estimates = NicRows("cx5-100g", {row}).estimates();
  EXPECT_EQ(std::ranges::count(estimates.searched, "nic.pcie.write_latency", &Estimate::path), 0);
  const auto fixed = std::ranges::find(estimates.fixed, "nic.pcie.write_latency", &Unsearched::path);
  ASSERT_NE(fixed, estimates.fixed.end());
  EXPECT_EQ(fixed->why, "not the same in all hosts of the experiments");
  EXPECT_EQ(std::ranges::count(estimates.searched, "host.cpu.detect", &Estimate::path), 1) << "they have it in common";
}

// Bounds must be possible values of the parameter, and its value lies between them.
TEST(Calibrate, EstimatesOfTheShipped) {
  const auto check = [](const std::string& nic, const std::string& host) {
    auto config = load_config(nic, "back-to-back", {}, {}, host);
    const auto before = to_toml(config);
    const auto estimates = estimates_of(marked_settings(nic, host), ParamList(config));
    EXPECT_GT(estimates.searched.size(), 10);
    EXPECT_GT(estimates.fixed.size(), 5);
    EXPECT_EQ(to_toml(config), before);
    for (const auto& of : estimates.searched) {
      EXPECT_EQ(of.nearest(of.value), of.value) << nic << ": " << of.path;
      EXPECT_EQ(of.nearest(1e300), of.high) << nic << ": " << of.path;
    }
  };
  for (const auto& nic : data_names(DataKind::nic)) check(nic, "");
  for (const auto& host : data_names(DataKind::host)) check("cx5-100g", host);
}

TEST(Calibrate, ValuesThatOneWouldWriteDown) {
  const Estimate time{"", 45e3, 30e3, 50e3, 0, nullptr};
  EXPECT_EQ(time.nearest(43'217), 43'200);
  EXPECT_EQ(time.nearest(29e3), 30e3);
  const Estimate count{"", 4, 2, 8, 1, nullptr};
  EXPECT_EQ(count.nearest(4.6), 5);
  const Estimate entries{"", 1280, 1024, 1280, 64, nullptr};
  EXPECT_EQ(entries.nearest(1100), 1088);
}

TEST(Calibrate, BoundsThatCannotBe) {
  auto config = load_config("cx5-100g", "back-to-back", {});
  const auto with = [&](Bounds bounds) {
    const Setting setting{"nic.tx.latency", Setting::Type::text, "170 ns", "cx5-100g.toml:1"};
    return estimates_of({{setting, Mark{Source::estimated, bounds, false, ""}}}, ParamList(config));
  };
  EXPECT_EQ(with({0.5, 2, "x"}).searched.at(0).high, 340e3);
  EXPECT_EQ(with({100, 200, "ns"}).searched.at(0).low, 100e3);
  for (const auto& bad : {Bounds{1, 2, ""}, Bounds{1, 2, "KiB"}, Bounds{180, 200, "ns"}, Bounds{1, 100, "ns"}})
    EXPECT_THROW(with(bad), ConfigError) << bad.low << bad.unit;
}

TEST(Calibrate, Scaled) {
  Duration time = 170_ns;
  ByteCount bytes = 8_KiB;
  std::uint32_t count = 4;
  double share = 0.5;
  bool flag = true;
  const auto of = [](ParamEntry::Value value, double factor) { return scaled({"", "", value, {}}, factor); };
  EXPECT_THAT(of(&time, 1.1), Optional(std::string("187 ns")));
  EXPECT_THAT(of(&bytes, 0.5), Optional(std::string("4 KiB")));
  EXPECT_THAT(of(&count, 1.1), Optional(std::string("5"))) << "at least one";
  EXPECT_THAT(of(&count, 0.9), Optional(std::string("3")));
  EXPECT_THAT(of(&share, 1.1), Optional(std::string("0.55")));
  EXPECT_EQ(of(&flag, 1.1), std::nullopt);
  count = 0;
  EXPECT_EQ(of(&count, 0.9), std::nullopt) << "nothing below";
}

// A WRITE of 2 bytes, inline, passes each NIC once.
TEST(Calibrate, SensitivityOfAOneWayTrip) {
  const auto rows = all_rows();
  const auto table = sensitivity_of(*std::ranges::find(rows, "CAL-1", &Row::id), 2);
  const auto moves = [&](const std::string& parameter, const std::string& to) {
    for (const auto& line : table)
      if (line["parameter"] == parameter && line["moved_to"] == to)
        return line["then"].get<double>() - line["simulated"].get<double>();
    ADD_FAILURE() << "no line of " << parameter << " at " << to;
    return 0.0;
  };
  EXPECT_NEAR(moves("nic.tx.latency", "187 ns"), 0.017, 1e-6);
  EXPECT_NEAR(moves("nic.rx.latency", "153 ns"), -0.017, 1e-6);
  EXPECT_NEAR(moves("host.mmio_write_latency", "187 ns"), 0.017, 1e-6) << "of the host, too";
  EXPECT_NEAR(moves("nic.contexts.mtt.miss_slots", "3"), 0, 1e-9);
  for (const auto& line : table) EXPECT_NE(line["parameter"], "nic.pcie.read_latency") << "it is measured";
}

}  // namespace
}  // namespace rnicsim::sim::calibrate

// Does `rnicsim calibrate` judge as it says, and does its sensitivity find what a number rests on?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/calibrate/row.h"
#include "sim/calibrate/sensitivity.h"
#include "sim/calibrate/verdict.h"

namespace rnicsim::sim::calibrate {
namespace {

using namespace rnicsim::literals;
using testing::Optional;

Check check_of(double low, double high, std::string argued = {}) {
  return {"", (low + high) / 2, low, high, "", {}, std::move(argued)};
}

TEST(Calibrate, Verdicts) {
  const auto check = check_of(1, 2);
  for (const double good : {1.05, 1.5, 1.95}) EXPECT_EQ(judge(check, good), Verdict::pass) << good;
  for (const double near : {1.0, 1.049, 1.951, 2.0}) EXPECT_EQ(judge(check, near), Verdict::near_edge) << near;
  for (const double bad : {0.999, 2.001}) {
    EXPECT_EQ(judge(check, bad), Verdict::fail) << bad;
    EXPECT_EQ(judge(check_of(1, 2, "docs"), bad), Verdict::argued) << bad;
  }
  EXPECT_EQ(judge(check_of(15, kMuch), 15.5), Verdict::near_edge);
  EXPECT_EQ(judge(check_of(15, kMuch), 32), Verdict::pass);
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

// A WRITE of 2 B, inline, passes each NIC once.
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

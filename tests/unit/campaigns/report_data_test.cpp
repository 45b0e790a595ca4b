// SPDX-License-Identifier: Apache-2.0
// Selection of results for a report's page, and their format.
#include <gmock/gmock.h>

#include "sim/report/page.h"
#include "sim/report/page_data.h"

namespace rnicsim::sim::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
sweep::Interval exactly(double value) { return {value, value, value, 1}; }

Point point(std::uint64_t number, std::map<std::string, double> metrics, std::map<Resource, Use> uses = {}) {
  Point point{.number = number, .runs = {{.seed = 1, .status = Run::Status::done}}};
  for (const auto& [name, value] : metrics) point.metrics[name] = exactly(value);
  point.uses = std::move(uses);
  return point;
}

std::vector<std::string> names(const Json& metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric["name"].get<std::string>());
  return names;
}

TEST(ReportData, CountersThatVaryMostGoFirstAndTheOthersAreCounted) {
  ResultSet set{.name = "a", .units = {{"flow[0].rate_per_s", "op/s"}}};
  for (int i = 0; i < 2; ++i)
    set.points.push_back(point(
        i, {{"flow[0].rate_per_s", 5}, {"h0.little", 100 + i}, {"h0.much", 1 + i}, {"h0.never", 0}, {"h0.same", 7}}));
  const auto all = page_data({set}, {})["sets"][0];
  EXPECT_THAT(names(all["metrics"]), ElementsAre("flow[0].rate_per_s", "h0.much", "h0.little", "h0.same"));
  EXPECT_FALSE(all["left_out"].contains("counters"));
  // Two points: one counter fits.
  const auto part = page_data({set}, {}, {.counter_cells = 2})["sets"][0];
  EXPECT_THAT(names(part["metrics"]), ElementsAre("flow[0].rate_per_s", "h0.much"));
  EXPECT_EQ(part["left_out"]["counters"], 2);
}

TEST(ReportData, WhatLimitsAPointIsAmongTheResourcesHoweverFewFit) {
  const Resource busy{"h0", "busy"}, idle{"h0", "idle"}, limit{"h1", "limit"};
  ResultSet set{.name = "a"};
  set.points.push_back(point(0, {}, {{busy, {.share = 0.9}}, {idle, {.share = 0.2}}, {limit, {.share = 0.1}}}));
  set.points[0].limit = Limit{limit, {.share = 0.1}, "h1 limit 10%"};
  const auto data = page_data({set}, {}, {.resources = 1})["sets"][0];
  ASSERT_EQ(data["resources"].size(), 1);
  EXPECT_EQ(data["resources"][0]["resource"], "limit");
  EXPECT_FALSE(data["resources"][0].contains("queue")) << "nobody measured one";
  EXPECT_EQ(data["left_out"]["resources"], 2);
  EXPECT_EQ(data["left_out"]["highest_use"], 0.9);
}

TEST(ReportData, ABandOnlyWhereSeedsDiffer) {
  ResultSet set{.name = "a"};
  set.points = {point(0, {{"flow[0].x", 3}}), point(1, {})};
  set.units["flow[0].x"] = "";
  auto metric = page_data({set}, {})["sets"][0]["metrics"][0];
  EXPECT_EQ(metric["mean"], Json::parse("[3, null]"));
  EXPECT_FALSE(metric.contains("low"));
  set.points[0].metrics["flow[0].x"] = {3, 2.5, 3.5, 2};
  metric = page_data({set}, {})["sets"][0]["metrics"][0];
  EXPECT_EQ(metric["low"], Json::parse("[2.5, null]"));
  EXPECT_EQ(metric["high"], Json::parse("[3.5, null]"));
}

TEST(ReportData, StagesAreMeansOverAllWorkRequests) {
  ResultSet set{.name = "a"};
  set.points = {point(0, {}), point(1, {})};
  set.points[0].waterfall = {{"WRITE", false, 4, 400, {{"post", 100}, {"never", 0}, {"wire", 300}}}};
  const auto table = page_data({set}, {})["sets"][0]["waterfalls"][0];
  EXPECT_EQ(table["latency_ps"], Json::parse("[100, null]"));
  EXPECT_EQ(table["stages"], Json::parse(R"([{"name": "post", "mean_ps": [25, null]},
                                             {"name": "wire", "mean_ps": [75, null]}])"));
}

TEST(ReportData, DifferencesTellWhatIsNotThereEither) {
  ResultSet set{.name = "a", .nic = "not one of ours"};
  set.points = {point(0, {}), point(1, {}), point(2, {})};
  set.points[1].configuration = {{"a", "1"}, {"b", "2"}};
  set.points[2].configuration = {{"a", "3"}, {"c", "4"}};
  const auto configuration = page_data({set}, {})["sets"][0]["configuration"];
  EXPECT_EQ(configuration["point"], 1) << "the first that was run";
  EXPECT_EQ(configuration["differences"], Json::parse(R"([{}, {}, {"a": "3", "c": "4", "b": null}])"));
  EXPECT_THAT(configuration["shipped"]["unknown"].get<std::string>(), HasSubstr("not one of ours"));
}

TEST(ReportPage, NoTextEndsAScript) {
  const Json data{{"</script>", "<!-- & <b>"}, {"bytes", "\xff"}};
  const auto text = script_json(data);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(text, Not(HasSubstr("&")));
  const auto back = Json::parse(text);
  EXPECT_EQ(back["</script>"], "<!-- & <b>");
  EXPECT_EQ(back["bytes"], "\xef\xbf\xbd") << "what is no UTF-8 is replaced";
}

TEST(ReportPage, TextsAreNoMarkup) { EXPECT_EQ(html_text("<a href='\"&\">"), "&lt;a href=&#39;&quot;&amp;&quot;&gt;"); }

}  // namespace
}  // namespace rnicsim::sim::report

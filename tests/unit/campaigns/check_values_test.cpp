// SPDX-License-Identifier: Apache-2.0
// Values by name, properties and expected results, and the report in the format of Jenkins.
#include <gmock/gmock.h>

#include "sim/check/report.h"
#include "sim/check/values.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check::values_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::ThrowsMessage;
using Relation = Property::Relation;

const Json& some_results() {
  static const auto results = Json::parse(R"({
    "schema": 1, "command": "bench", "rnicsim": "1.2", "seed": 1, "nic": {"file": "a", "crc32": "b"},
    "end_ps": 5000000,
    "flows": [{"rate_per_s": 2.5, "latency_ps": {"samples": 3, "p99": 700000}, "parameters": {"qps": 4}}],
    "hosts": {"h0": {"counters": {"nic.port.tx_frames": 12, "nic.port.tx_bytes": 1000},
                     "derived": {"nic.contexts.qpc.hit_rate": 0.5, "nic.contexts.mpt.hit_rate": null}},
              "h1": {"counters": {"nic.port.tx_frames": 11}, "derived": {}}},
    "switches": {"s0": {"counters": {"dropped": 0}}},
    "parameters": {"nic.tx.latency": "1 ns"}, "simulator": {"cpu_s": 1.5}})");
  return results;
}

std::optional<std::string> violation(const std::string& value, Relation relation, const Operand& operand,
                                     Margin margin = {}) {
  return check::violation({value, relation, operand, margin, "property[0].x"}, values_of(some_results()));
}

TEST(Values, ByName) {
  std::vector<std::string> names;
  for (const auto& value : values_of(some_results())) names.push_back(value.name);
  EXPECT_THAT(names,
              ElementsAre("end_ps", "flows[0].rate_per_s", "flows[0].latency_ps.samples", "flows[0].latency_ps.p99",
                          "h0.nic.port.tx_frames", "h0.nic.port.tx_bytes", "h0.nic.contexts.qpc.hit_rate",
                          "h0.nic.contexts.mpt.hit_rate", "h1.nic.port.tx_frames", "s0.dropped"));
}

TEST(Values, Units) {
  for (const char* time : {"end_ps", "flows[0].latency_ps.p99", "waterfall.operations[0].latency.mean_ps",
                           "h0.nic.dma.read_time", "*.nic.dma.to_host_busy"})
    EXPECT_EQ(unit_of(time), Unit::time) << time;
  for (const char* rate : {"flows[0].goodput_bits_per_s", "h0.nic.port.tx_bytes_rate"})
    EXPECT_EQ(unit_of(rate), Unit::rate) << rate;
  EXPECT_EQ(unit_of("h0.nic.port.tx_bytes"), Unit::bytes);
  for (const char* number : {"flows[0].latency_ps.samples", "flows[0].rate_per_s", "h0.nic.port.tx_frames",
                             "h0.nic.dma.to_host_busy_share", "x", "."})
    EXPECT_EQ(unit_of(number), Unit::none) << number;
}

TEST(Values, AStarStandsForAnythingButADot) {
  for (const auto& [pattern, name] :
       {std::pair("a.b", "a.b"), std::pair("*.b", "h0.b"), std::pair("a.*", "a.bc"), std::pair("a.*c*e", "a.bcde"),
        std::pair("*.*", "a.b"), std::pair("flows[*].x", "flows[10].x"), std::pair("a*", "a"), std::pair("**", "abc")})
    EXPECT_TRUE(matches(pattern, name)) << pattern;
  for (const auto& [pattern, name] : {std::pair("a", "ab"), std::pair("*", "a.b"), std::pair("a.*", "a"),
                                      std::pair("a*c", "ab"), std::pair("*.b.c", "a.b"), std::pair("", "a")})
    EXPECT_FALSE(matches(pattern, name)) << pattern;
}

TEST(Properties, EachRelationAtItsBound) {
  const std::string frames = "h0.nic.port.tx_frames";  // value 12
  struct Row {
    Relation relation;
    double at, beyond;  // the relation holds with `at`, and not with `beyond`
  };
  for (const auto& row : {Row{Relation::equals, 12, 13}, Row{Relation::below, 13, 12}, Row{Relation::at_most, 12, 11},
                          Row{Relation::above, 11, 12}, Row{Relation::at_least, 12, 13}}) {
    EXPECT_FALSE(violation(frames, row.relation, row.at)) << int(row.relation);
    EXPECT_TRUE(violation(frames, row.relation, row.beyond)) << int(row.relation);
  }
}

TEST(Properties, BothValuesAreTold) {
  EXPECT_THAT(violation("flows[0].latency_ps.p99", Relation::below, 600000.0),
              Optional(std::string("property[0].x: flows[0].latency_ps.p99 is 700 ns, not below 600 ns")));
  EXPECT_THAT(violation("h0.nic.port.tx_frames", Relation::equals, "h1.nic.port.tx_frames"),
              Optional(std::string("property[0].x: h0.nic.port.tx_frames is 12, not equal to h1.nic.port.tx_frames, "
                                   "which is 11")));
  EXPECT_THAT(violation("h0.nic.port.tx_frames", Relation::equals, 10.0, {0, 0.1}),
              Optional(HasSubstr("is 12, not equal to 10, with a tolerance of 1")));
}

TEST(Properties, AMarginCountsBothWays) {
  for (const double operand : {10.0, 14.0}) {
    EXPECT_FALSE(violation("h0.nic.port.tx_frames", Relation::equals, operand, {2, 0})) << operand;
    EXPECT_TRUE(violation("h0.nic.port.tx_frames", Relation::equals, operand, {1.9, 0})) << operand;
  }
}

TEST(Properties, APatternIsOfEach) {
  EXPECT_FALSE(violation("*.nic.port.tx_frames", Relation::at_least, 11.0));
  EXPECT_THAT(violation("*.nic.port.tx_frames", Relation::at_least, 12.0),
              Optional(HasSubstr("h1.nic.port.tx_frames")));
}

TEST(Properties, WhatCannotBeSaid) {
  EXPECT_THAT([] { violation("h0.nic.port.tx_frame", Relation::equals, 1.0); },
              ThrowsMessage<ConfigError>(HasSubstr("no value 'h0.nic.port.tx_frame'; did you mean h0.nic.port.tx_fr")));
  EXPECT_THAT([] { violation("*.nothing", Relation::equals, 0.0); }, ThrowsMessage<ConfigError>(HasSubstr("no value")));
  EXPECT_THAT([] { violation("end_ps", Relation::equals, "end"); }, ThrowsMessage<ConfigError>(HasSubstr("'end'")));
  // A hit rate without lookups is neither high nor low.
  EXPECT_THAT(violation("h0.nic.contexts.mpt.hit_rate", Relation::below, 2.0), Optional(HasSubstr("is not known")));
}

TEST(Results, WhatIsExpectedAndWhatMayDiffer) {
  auto results = some_results();
  const auto compare = [&](std::vector<MayDiffer> may_differ) {
    return compare_results({"file", std::move(may_differ)}, some_results(), results);
  };
  EXPECT_THAT(compare({}).first, IsEmpty());
  results["hosts"]["h0"]["counters"]["nic.port.tx_frames"] = 14;
  results["hosts"]["h1"]["counters"]["nic.port.tx_frames"] = 10;
  EXPECT_EQ(compare({}).first, "h0.nic.port.tx_frames: 12 expected, not 14");
  EXPECT_EQ(compare({}).count, 2u);
  EXPECT_EQ(compare({{"*.nic.port.tx_frames", Margin{2, 0}}}).count, 0u);
  EXPECT_EQ(compare({{"*.nic.port.tx_frames", Margin{1, 0}}}).first,
            "h0.nic.port.tx_frames: 12 expected, with a tolerance of 1, not 14");
  EXPECT_EQ(compare({{"*.nic.port.tx_frames", std::nullopt}}).count, 0u);
  EXPECT_EQ(compare({{"*.nic.port.tx_frames", std::nullopt}, {"h1.*.*.*", Margin{}}}).first,
            "h1.nic.port.tx_frames: 11 expected, not 10")
      << "the last one that fits counts";
}

TEST(Results, ConfigurationAndMachineAreNotCompared) {
  auto results = some_results();
  results["rnicsim"] = "2.0";
  results["simulator"]["cpu_s"] = 2.5;
  results["parameters"]["nic.tx.latency"] = "2 ns";
  EXPECT_EQ(compare_results({}, some_results(), results).count, 0u);
  results["hosts"]["h0"]["counters"].erase("nic.port.tx_frames");
  EXPECT_EQ(compare_results({}, some_results(), results).first,
            "h0.nic.port.tx_frames: 12 expected, but the results have no such value");
}

TEST(Results, WhatAFileDoesNotNameIsNeitherComparedNorAdded) {
  const auto expected = Json::parse(R"({"hosts": {"h0": {"counters": {"nic.port.tx_frames": 3}}}})");
  EXPECT_EQ(compare_results({}, expected, some_results()).count, 1u);
  EXPECT_EQ(kept_results(some_results(), &expected),
            Json::parse(R"({"hosts": {"h0": {"counters": {"nic.port.tx_frames": 12}}}})"));
  const auto all = kept_results(some_results(), nullptr);
  EXPECT_FALSE(all.contains("simulator") || all.contains("parameters") || all.contains("seed"));
  EXPECT_EQ(compare_results({}, all, some_results()).count, 0u);
}

TEST(Report, Junit) {
  const std::vector<Verdict> verdicts{
      {.name = "a", .findings = {}, .replacements = {}},
      {.name = "b<\"&", .outcome = Outcome::failed, .findings = {"x < y\nmore\x01\xff", "also"}, .replacements = {}},
      {.name = "c", .outcome = Outcome::broken, .findings = {"no\xef\xbf\xbf"}, .replacements = {}, .seconds = 1.5},
      {.name = "d", .findings = {}, .notes = {"1 of 2 < 3"}, .replacements = {}}};
  const auto xml = junit_xml("my/cases", verdicts);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"my/cases\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"0\" "
                             "time=\"1.500\">"));
  EXPECT_THAT(xml, HasSubstr("<testcase name=\"a\" classname=\"my/cases\" time=\"0.000\"/>"));
  EXPECT_THAT(xml, HasSubstr("<testcase name=\"b&lt;&quot;&amp;\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"x &lt; y\" type=\"failed\">x &lt; y\nmore?\xef\xbf\xbd\nalso</fail"));
  EXPECT_THAT(xml, HasSubstr("<error message=\"no?\" type=\"broken\">no?</error>")) << "XML has no U+FFFF";
  EXPECT_THAT(xml, HasSubstr("\n      <system-out>1 of 2 &lt; 3</system-out>\n    </testcase>\n"));
  EXPECT_THAT(xml, Not(HasSubstr("\x01")));
}

}  // namespace
}  // namespace rnicsim::sim::check::values_test

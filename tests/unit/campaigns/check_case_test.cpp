// SPDX-License-Identifier: Apache-2.0
// case.toml: valid content; each mistake is reported with the file and the key's path.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/check/case.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using namespace literals;

class CaseReader : public ::testing::Test {
 protected:
  CaseReader() {
    std::string name = (fs::temp_directory_path() / "case-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~CaseReader() override { fs::remove_all(folder); }

  fs::path put(const std::string& name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  Case read(const std::string& text) { return read_case(put("one.toml", text), "one"); }
  void expect_refused(const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { read("schema = 1\n" + text); },
                ThrowsMessage<ConfigError>(HasSubstr((folder / "one.toml").string() + ": " + message)))
        << text;
  }

  fs::path folder;
};

TEST_F(CaseReader, ProgramsWithEveryKey) {
  const auto read = this->read(R"(
schema = 1
title = "a transfer"
on = [{ host = "h1", command = "ib_write_bw" }, { host = "h0", command = "ib_write_bw 10.0.0.2" }]
nic = "cx6-200g"
topology = "star:4"
engine = "lockstep"
seed = 7
set = ["nic.tx.latency=1us"]
fault = ["drop=1e-3,host=h0"]
limit = "2500 ms"
status = 1
[trace]
file = "one.trace"
times = ["20 ns", "1.5 %"]
leave_out = ["wqe_fetch", "doorbell"]
[results]
file = "one.json"
may_differ = [{ value = "*.nic.pcie.dma_reads", by = 3 }, { value = "end_ps", by = "5 us" }, { value = "h0.*.x" }]
)");
  EXPECT_EQ(read.name, "one");
  EXPECT_EQ(read.title, "a transfer");
  EXPECT_THAT(std::get<Programs>(read.run).on,
              ElementsAre(std::pair("h1", "ib_write_bw"), std::pair("h0", "ib_write_bw 10.0.0.2")));
  EXPECT_EQ(read.nic, "cx6-200g");
  EXPECT_EQ(read.topology, "star:4");
  EXPECT_EQ(read.engine, "lockstep");
  EXPECT_EQ(read.seed, 7u);
  EXPECT_THAT(read.sets, ElementsAre("nic.tx.latency=1us"));
  EXPECT_THAT(read.faults, ElementsAre("drop=1e-3,host=h0"));
  EXPECT_EQ(read.limit, std::chrono::milliseconds(2500));
  EXPECT_EQ(read.status, 1);
  ASSERT_TRUE(read.trace);
  EXPECT_EQ(read.trace->file, folder / "one.trace");
  EXPECT_EQ(read.trace->times.absolute, 20_ns);
  EXPECT_DOUBLE_EQ(read.trace->times.relative, 0.015);
  EXPECT_THAT(read.trace->left_out, ElementsAre(EventKind::wqe_fetch, EventKind::doorbell));
  ASSERT_TRUE(read.results);
  ASSERT_EQ(read.results->may_differ.size(), 3u);
  EXPECT_EQ(read.results->may_differ[0].margin->absolute, 3);
  EXPECT_EQ(read.results->may_differ[1].margin->absolute, 5e6);
  EXPECT_FALSE(read.results->may_differ[2].margin);
}

TEST_F(CaseReader, TheOtherWays) {
  EXPECT_THAT(std::get<Programs>(read("schema = 1\nrun = \"ib_send_bw -n '10'\"").run).words,
              ElementsAre("ib_send_bw", "-n", "10"));
  EXPECT_EQ(std::get<Workload>(read("schema = 1\nworkload = \"write-4k\"").run).name, "write-4k");
  EXPECT_THAT(std::get<Simulator>(read("schema = 1\nsimulator = \"mine --trace=@trace\"").run).words,
              ElementsAre("mine", "--trace=@trace"));
}

TEST_F(CaseReader, PropertiesTakeTheValuesUnit) {
  using Relation = Property::Relation;
  const auto read = this->read(R"(
schema = 1
workload = "write-4k"
[[property]]
value = "flows[0].latency_ps.p99"
above = "1 us"
below = "5us"
[[property]]
value = "flows[0].goodput_bits_per_s"
at_least = "90 Gb/s"
[[property]]
value = "h0.nic.port.tx_bytes"
at_most = "4 KiB"
[[property]]
value = "h0.nic.port.tx_frames"
equals = "h1.nic.port.rx_frames"
within = "1 %"
[[property]]
value = "*.nic.rx.icrc_errors"
equals = 0
)");
  ASSERT_EQ(read.properties.size(), 6u);
  const auto expect = [&](std::size_t i, Relation relation, const Operand& operand, const std::string& where) {
    EXPECT_EQ(read.properties[i].relation, relation) << i;
    EXPECT_EQ(read.properties[i].operand, operand) << i;
    EXPECT_EQ(read.properties[i].where, where) << i;
  };
  expect(0, Relation::below, 5e6, "property[0].below");
  expect(1, Relation::above, 1e6, "property[0].above");
  expect(2, Relation::at_least, 90e9, "property[1].at_least");
  expect(3, Relation::at_most, 4096.0, "property[2].at_most");
  expect(4, Relation::equals, "h1.nic.port.rx_frames", "property[3].equals");
  EXPECT_DOUBLE_EQ(read.properties[4].margin.relative, 0.01);
  expect(5, Relation::equals, 0.0, "property[4].equals");
}

TEST_F(CaseReader, ALimitOfSimulatedTimeLeavesRealTimeAlone) {
  const auto by_default = read("schema = 1\nrun = \"ib_write_bw\"\nsimulated_limit = \"20 ms\"\n");
  EXPECT_EQ(by_default.simulated_limit, Duration{20'000'000'000});
  EXPECT_EQ(by_default.limit, std::chrono::minutes(10));
  const auto both = read("schema = 1\nrun = \"ib_write_bw\"\nsimulated_limit = \"20 ms\"\nlimit = \"9 s\"\n");
  EXPECT_EQ(both.limit, std::chrono::seconds(9));
  EXPECT_EQ(read("schema = 1\nrun = \"ib_write_bw\"\n").limit, std::chrono::minutes(1));
}

TEST_F(CaseReader, MistakesAreNamedWithTheirPath) {
  const std::string run = "run = \"ib_write_bw\"\n";
  const auto property = [&](const std::string& value, const std::string& rest) {
    return run + "[[property]]\nvalue = \"" + value + "\"\n" + rest;
  };
  expect_refused("", "one of run, on, workload and simulator is needed, not none");
  expect_refused(run + "workload = \"write-4k\"", "one of run, on, workload and simulator is needed, not several");
  expect_refused(run + "sets = []", "sets: unknown key; did you mean set?");
  expect_refused("run = \"a | b\"", "run: command 'a | b': a character has a meaning only in a shell");
  expect_refused(run + "set = \"a=b\"", "set: a list of texts is needed, not \"a=b\"");
  expect_refused(run + "engine = \"fast\"", "engine: \"model\", \"rtl\" or \"lockstep\" is needed");
  expect_refused(run + "limit = 60", "limit: \"1 ms\"..");
  expect_refused(run + "simulated_limit = \"5 MiB\"", "simulated_limit: \"1 ps\"..");
  expect_refused("simulator = \"a\"\nsimulated_limit = \"5 ms\"", "simulated_limit: cannot be combined with simulator");
  expect_refused(run + "status = 256", "status: 0..255 is needed, not 256");
  expect_refused(run + "[trace]", "trace.file: is missing");
  expect_refused(run + "[trace]\nfile = \"a\"\ntimes = \"fast\"", "trace.times: a time such as");
  expect_refused(run + "[trace]\nfile = \"a\"\ntimes = 5", "trace.times: a time such as");
  expect_refused(run + "[trace]\nfile = \"a\"\nleave_out = [\"wqes\"]",
                 "trace.leave_out: no event is called 'wqes'; did you mean wqe?");
  expect_refused(run + "[trace]\nfile = \"a\"\ntolerance = 1", "trace.tolerance: unknown key");
  expect_refused(run + "[results]\nfile = \"a\"\nmay_differ = [{ value = \"end_ps\", by = 5 }]",
                 "results.may_differ[0].by: a share such as \"1 %\", or a time such as \"5 us\", is needed, not 5");
  expect_refused(property("end_ps", ""), "property[0].value: equals, below, at_most, above or at_least is needed");
  expect_refused(property("end_ps", "below = 5"),
                 "property[0].below: a time such as \"5 us\", or another value's name");
  expect_refused(property("h0.nic.tx.packets", "below = \"5 us\""), "property[0].below: a number, or another");
  expect_refused(property("h0.nic.port.tx_bytes_rate", "above = 9e9"), "property[0].above: a rate such as");
  expect_refused(property("end_ps", "below = \"h0.nic.tx.packets\""),
                 "property[0].below: end_ps and h0.nic.tx.packets have different units");
  expect_refused(property("h0.nic.tx.packets", "equals = \"*.nic.tx.packets\""), "property[0].equals: a number, or");
  expect_refused(property("h0.nic.tx.packets", "equals = nan"), "property[0].equals: a number, or");
  expect_refused(property("h0.nic.tx.packets", "below = 5\nwithin = 1"), "property[0].within: needs equals");
  expect_refused(property("h0.nic.tx.packets", "equals = 5\nwithin = -1"), "property[0].within: a share such as");
  expect_refused("on = [{ host = \"h0\" }]", "on[0].command: is missing");
  expect_refused("simulator = \"mine\"\nnic = \"cx5-100g\"", "nic: cannot be combined with simulator");
  expect_refused("simulator = \"mine\"\n[trace]\nfile = \"a\"", "simulator: @trace, the file for its trace, is needed");
  expect_refused("simulator = \"mine\"\n[results]\nfile = \"a\"", "simulator: @results, the file");
}

TEST_F(CaseReader, Levels) {
  const std::string run = "schema = 1\nrun = \"ib_write_bw\"\n", trace = "[trace]\nfile = \"a.trace\"\n";
  const std::string statistics =
      "[statistics]\nfile = \"a.json\"\nseeds = [7, 8, 9]\ntolerance = \"2 %\"\nvalues = [\"h0.*\"]\n";
  EXPECT_EQ(read(run + trace).level, Level::exact);
  EXPECT_EQ(read(run + "compare = \"order\"\n" + trace).level, Level::order);
  auto several = read(run + "compare = \"statistical\"\n" + trace + statistics);
  EXPECT_EQ(several.level, Level::statistical);
  EXPECT_EQ(several.statistics->file, folder / "a.json");
  EXPECT_EQ(several.statistics->tolerance.relative, 0.02);
  EXPECT_EQ(several.statistics->confidence, 0.95);
  EXPECT_THAT(several.statistics->values, ElementsAre("h0.*"));
  EXPECT_THAT(several.run_seeds(), ElementsAre(7u, 8u, 9u));
  EXPECT_EQ(several.seed, 7u);
  set_level(several, Level::exact);
  EXPECT_THAT(several.run_seeds(), ElementsAre(7u)) << "only statistics run several";
  auto alone = read(run + "compare = \"statistical\"\n" + statistics);
  EXPECT_THAT([&] { set_level(alone, Level::order); },
              ThrowsMessage<ConfigError>(EndsWith("one.toml: --level order needs a table [trace]")));
  auto traced = read(run + trace);
  EXPECT_THAT([&] { set_level(traced, Level::statistical); },
              ThrowsMessage<ConfigError>(EndsWith("one.toml: --level statistical needs a table [statistics]")));
  auto other = read(run);
  set_level(other, Level::statistical);
  EXPECT_FALSE(other.needs_trace()) << "what compares no trace is as ever";
}

TEST_F(CaseReader, MistakesOfLevels) {
  const std::string run = "run = \"ib_write_bw\"\n", trace = "[trace]\nfile = \"a\"\n";
  const auto statistics = [&](const std::string& rest) {
    return run + "compare = \"statistical\"\n[statistics]\nfile = \"a\"\n" + rest;
  };
  const std::string seeds = "seeds = [1, 2]\n", tolerance = "tolerance = \"2 %\"\n";
  expect_refused(run + "compare = \"loose\"\n" + trace, R"(compare: "exact", "order" or "statistical" is needed)");
  expect_refused(run + "compare = \"order\"", "compare: \"order\" needs a table [trace]");
  expect_refused(run + "compare = \"exact\"", "compare: \"exact\" needs a table [trace]");
  expect_refused(run + "compare = \"statistical\"\n" + trace, "compare: \"statistical\" needs a table [statistics]");
  expect_refused(run + "compare = \"order\"\n" + trace + "times = \"1 %\"",
                 "trace.times: cannot be combined with compare = \"order\"");
  expect_refused(run + "[statistics]\nfile = \"a\"\n" + seeds + tolerance,
                 "statistics: this key needs compare = \"statistical\" or a [trace]");
  expect_refused(statistics(tolerance), "statistics.seeds: is missing");
  for (const char* wrong : {"[1]", "[]", "[1, 1]", "3"})
    expect_refused(statistics(tolerance + "seeds = " + wrong),
                   "statistics.seeds: a list of two or more different seeds");
  expect_refused(statistics(tolerance + "seeds = [1, -2]"), "statistics.seeds: 0..");
  expect_refused(statistics(seeds), "statistics.tolerance: is missing");
  expect_refused(statistics(seeds + "tolerance = \"5 us\""), "statistics.tolerance: a share such as \"2 %\" is needed");
  for (const char* wrong : {"100 %", "49 %", "much"})
    expect_refused(statistics(seeds + tolerance + "confidence = \"" + wrong + '"'),
                   "statistics.confidence: a share from \"50 %\" up to below \"100 %\" is needed");
  expect_refused(statistics(seeds + tolerance + "value = []"), "statistics.value: unknown key; did you mean");
  expect_refused("seed = 2\n" + statistics(seeds + tolerance),
                 "statistics.seeds: the first seed must be the seed of the case");
  expect_refused(
      "simulator = \"mine @trace\"\ncompare = \"statistical\"\n[statistics]\nfile = \"a\"\n" + seeds + tolerance,
      "simulator: @seed, each seed of its statistics, is needed");
}

TEST_F(CaseReader, AnotherSchemaAndNoToml) {
  EXPECT_THAT([&] { read("run = \"a\""); }, ThrowsMessage<ConfigError>(EndsWith("one.toml: schema: is missing")));
  EXPECT_THAT([&] { read("schema = 2\nrun = \"a\"\nfuture = 1"); },
              ThrowsMessage<ConfigError>(EndsWith("schema: version 2 is not supported; this rnicsim reads version 1")));
  EXPECT_THAT([&] { read("schema = 1\nrun = "); }, ThrowsMessage<ConfigError>(HasSubstr("one.toml:2: ")));
  EXPECT_THAT([&] { read_case(folder / "absent.toml", "absent"); },
              ThrowsMessage<ConfigError>(EndsWith("absent.toml: not a file")));
}

TEST_F(CaseReader, AFolderOfCases) {
  EXPECT_THAT([&] { find_cases(folder / "absent"); },
              ThrowsMessage<ConfigError>(EndsWith("No such file or directory")));
  EXPECT_THAT([&] { find_cases(folder); }, ThrowsMessage<ConfigError>(HasSubstr("no case in this folder")));
  put("b.toml", "");
  put("b.trace", "");
  put("a/case.toml", "");
  put("_shared/nic.toml", "");
  put(".git/config", "");
  fs::create_directory(folder / "empty");  // a folder without case.toml is no passing case
  std::vector<std::string> names;
  for (const auto& file : find_cases(folder)) names.push_back(file.name + " " + file.file.filename().string());
  EXPECT_THAT(names, ElementsAre("a case.toml", "b b.toml", "empty case.toml"));
  put("b/case.toml", "");
  EXPECT_THAT([&] { find_cases(folder); }, ThrowsMessage<ConfigError>(HasSubstr("have the same name")));
}

}  // namespace
}  // namespace rnicsim::sim::check

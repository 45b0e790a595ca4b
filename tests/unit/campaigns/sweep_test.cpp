// SPDX-License-Identifier: Apache-2.0
// Axes of a sweep, shares of its runs, and confidence intervals of the results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/bench/bench.h"
#include "sim/config/config_error.h"
#include "sim/sweep/plan.h"
#include "sim/sweep/results.h"
#include "sim/sweep/share.h"
#include "sim/sweep/values.h"

namespace rnicsim::sim::sweep {
namespace {

using Values = std::vector<std::string>;

TEST(SweepValues, Lists) {
  const auto axis = parse_axis("flow.qps", "16, 64,256");
  EXPECT_EQ(axis.key, "flow.qps");
  EXPECT_EQ(axis.values, (Values{"16", "64", "256"}));
  EXPECT_EQ(axis.spacing, Spacing::list);
  EXPECT_EQ(parse_axis("nic", "cx5-100g,cx6-200g").values, (Values{"cx5-100g", "cx6-200g"}));
}

TEST(SweepValues, Ranges) {
  EXPECT_EQ(parse_axis("k", "1..4").values, (Values{"1", "2", "3", "4"}));
  EXPECT_EQ(parse_axis("k", "0..100+25").values, (Values{"0", "25", "50", "75", "100"}));
  EXPECT_EQ(parse_axis("k", "256..4096*2").values, (Values{"256", "512", "1024", "2048", "4096"}));
  EXPECT_EQ(parse_axis("k", "256..4000*4").values, (Values{"256", "1024"}));
  EXPECT_EQ(parse_axis("k", "0.1..0.5+0.1").values, (Values{"0.1", "0.2", "0.3", "0.4", "0.5"}));
  EXPECT_EQ(parse_axis("k", "1,2,4..16*2").values, (Values{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(parse_axis("k", "7..7").values, (Values{"7"}));
  EXPECT_EQ(parse_axis("k", "1..8*2").spacing, Spacing::geometric);
  EXPECT_EQ(parse_axis("k", "1..8").spacing, Spacing::linear);
}

TEST(SweepValues, Units) {
  EXPECT_EQ(parse_axis("k", "1 KiB..64 KiB*8").values, (Values{"1 KiB", "8 KiB", "64 KiB"}));
  EXPECT_EQ(parse_axis("k", "64 KiB..1 MiB*4").values, (Values{"64 KiB", "256 KiB", "1 MiB"}));
  EXPECT_EQ(parse_axis("k", "900ns..1.1us+100ns").values, (Values{"900 ns", "1 us", "1.1 us"}));
  EXPECT_EQ(parse_axis("k", "100 Gb/s..400 Gb/s*2").values, (Values{"100 Gb/s", "200 Gb/s", "400 Gb/s"}));
}

TEST(SweepValues, Mistakes) {
  for (const char* text :
       {"",           "1,,2",   "4..1",   "1..",    "..4",          "1..8*1",        "1..8*0",
        "0..8*2",     "1..8+0", "1..8-1", "a..b",   "1 KiB..4 KiB", "1 KiB..4 us*2", "1 KiB..8 KiB+1",
        "1..1000000", "1,1",    "1..3,2", "nan..2", "1..inf",       "1..9*nan"})
    EXPECT_THROW(parse_axis("k", text), ConfigError) << text;
}

TEST(SweepPlan, TheLastAxisVariesFastest) {
  SweepPlan plan;
  plan.workload = "write-4k";
  plan.axes = {parse_axis("flow.qps", "1,2"), parse_axis("flow.window", "3,4,5")};
  plan.seeds = {7, 9};
  EXPECT_EQ(plan.points(), 6u);
  EXPECT_EQ(plan.runs(), 12u);
  const auto run = run_of(plan, 9);
  EXPECT_EQ(run.point, 4u);
  EXPECT_EQ(run.seed, 9u);
  EXPECT_EQ(options_of(plan, run).sets, (Values{"flow.qps=2", "flow.window=4"}));
  EXPECT_EQ(*options_of(plan, run).seed, 9u);
}

TEST(SweepPlan, WhatIsNoParameter) {
  SweepPlan plan;
  plan.workload = "write-4k";
  plan.axes = {parse_axis("workload", "read-8"), parse_axis("nic", "cx6-200g"), parse_axis("topology", "star:4"),
               parse_axis("engine", "model"), parse_axis("fault", std::vector<std::string>{"drop=1e-3,host=h0"})};
  const auto options = options_of(plan, {0, 1});
  EXPECT_EQ(options.workload, "read-8");
  EXPECT_EQ(*options.nic, "cx6-200g");
  EXPECT_EQ(*options.topology, "star:4");
  EXPECT_EQ(options.engine.kind, "model");
  EXPECT_EQ(options.faults, (Values{"drop=1e-3,host=h0"}));
  EXPECT_TRUE(options.sets.empty());
}

TEST(SweepPlan, JsonAndBack) {
  SweepPlan plan;
  plan.name = "n";
  plan.workload = "write-4k";
  plan.nic = "cx6-200g";
  plan.sets = {"a=b"};
  plan.axes = {parse_axis("flow.qps", "1..8*2")};
  plan.seeds = {3};
  plan.metrics = {"h0.x"};
  plan.references = {{"label", "metric", {{"flow.qps", "2"}}, 1.5}};
  EXPECT_EQ(plan_json(plan_of(plan_json(plan))), plan_json(plan));
}

TEST(SweepPlan, NothingCanBeRun) {
  SweepPlan plan;
  plan.workload = "write-4k";
  plan.axes = {parse_axis("nic.no.such_key", "1,2")};
  EXPECT_THROW(plan.check(), ConfigError);
  plan.axes = {parse_axis("flow.qps", "0,2")};  // one value of the axis is possible
  EXPECT_NO_THROW(plan.check());
  plan.axes = {parse_axis("flow.qps", "1..2000"), parse_axis("flow.window", "1..2000")};
  EXPECT_THROW(plan.check(), ConfigError);
  for (const char* other : {"flow.qps", "flow[0].qps"})
    for (const bool first : {true, false}) {
      plan.axes = {parse_axis("flow.qps", "1,2"), parse_axis("flow.qps", "3")};
      plan.axes[first ? 0 : 1].key = other;
      EXPECT_THROW(plan.check(), ConfigError) << other;
    }
  plan.axes = {parse_axis("flow.qps", "1,2"), parse_axis("flow[0].window", "3")};
  EXPECT_NO_THROW(plan.check());
  plan.axes = {parse_axis("seed", "1,2")};
  EXPECT_THROW(plan.check(), ConfigError);
  plan.axes = {};
  plan.sets = {"seed=2"};
  EXPECT_THROW(plan.check(), ConfigError);
}

class SweepFile : public testing::Test {
 protected:
  SweepFile() { std::filesystem::create_directories(folder_); }
  ~SweepFile() override { std::filesystem::remove_all(folder_); }

  SweepPlan read(const std::string& text) const {
    std::ofstream(folder_ / "own.toml") << text;
    return read_sweep(folder_ / "own.toml");
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("rnicsim-sweep-test-" + std::to_string(getpid()));
};

TEST_F(SweepFile, WhatItHas) {
  const auto plan = read(R"(
schema = 1
workload = "write-4k"
nic = "cx6-200g"
seeds = [4, 2]
waterfall = true
metrics = ["h0.nic.contexts.qpc.hit_rate"]
[set]
nic.port.rate = "100 Gb/s"
"flow[0].window" = 8
[vary]
nic.contexts.qpc.l1_entries = "256..1024*2"
flow.qps = [16, "32..64*2"]
[[reference]]
label = "measured"
metric = "flow[0].rate_per_s"
at = { "flow.qps" = 64 }
value = 3e6
)");
  EXPECT_EQ(plan.name, "own");
  EXPECT_EQ(plan.seeds, (std::vector<std::uint64_t>{4, 2}));
  EXPECT_EQ(plan.sets, (Values{"flow[0].window=8", "nic.port.rate=100 Gb/s"}));
  ASSERT_EQ(plan.axes.size(), 2u);  // in the order of the file
  EXPECT_EQ(plan.axes[0].key, "nic.contexts.qpc.l1_entries");
  EXPECT_EQ(plan.axes[1].values, (Values{"16", "32", "64"}));
  ASSERT_EQ(plan.references.size(), 1u);
  EXPECT_EQ(plan.references[0].at, (std::vector<std::pair<std::string, std::string>>{{"flow.qps", "64"}}));
}

TEST_F(SweepFile, Mistakes) {
  const std::string good = "schema = 1\nworkload = \"write-4k\"\n";
  EXPECT_NO_THROW(read(good));
  for (const char* more : {"sede = 1", "seeds = 0", "seeds = [1, 1]", "seeds = []", "vary = 3", "[vary]\nk = \"4..1\"",
                           "[vary]\nk = []", "[vary]\nk = [[1]]", "metrics = 3", "[[reference]]\nlabel = \"x\"",
                           "x =", "[[reference]]\nlabel = \"x\"\nmetric = \"y\"\nvalue = nan"})
    EXPECT_THROW(read(good + more + "\n"), ConfigError) << more;
  EXPECT_THROW(read("workload = \"write-4k\"\n"), ConfigError);
  EXPECT_THROW(read("schema = 2\nworkload = \"write-4k\"\n"), ConfigError);
}

TEST(SweepShare, OfProcesses) {
  EXPECT_EQ(parse_share("3/16").number, 3u);
  EXPECT_EQ(parse_share("3/16").of, 16u);
  for (const char* text : {"", "3", "/", "3/", "/4", "4/4", "-1/4", "1/x", "1/2/3"})
    EXPECT_THROW(parse_share(text), ConfigError) << text;
}

TEST(SweepShare, OfARank) {
  unsetenv("PMI_RANK");
  EXPECT_FALSE(share_of_rank());
  setenv("PMI_RANK", "2", 1);
  setenv("PMI_SIZE", "3", 1);
  EXPECT_EQ(share_of_rank()->number, 2u);
  setenv("PMI_SIZE", "1", 1);  // a single process
  EXPECT_FALSE(share_of_rank());
  unsetenv("PMI_RANK");
  unsetenv("PMI_SIZE");
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_NTASKS", "4", 1);  // a batch script: no other process runs the rest
  EXPECT_FALSE(share_of_rank());
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);  // set by srun
  EXPECT_EQ(share_of_rank()->of, 4u);
  for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"}) unsetenv(name);
}

// Student's t with 2 degrees of freedom at 97.5 %: 4.303.
TEST(SweepResults, ConfidenceIntervals) {
  const auto interval = interval_of({1, 2, 3});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.high - 2, 4.3027 * 1 / std::sqrt(3.0), 1e-4);
  EXPECT_NEAR(2 - interval.low, interval.high - 2, 1e-12);
  const auto one = interval_of({5});
  EXPECT_EQ(one.low, 5);
  EXPECT_EQ(one.high, 5);
  EXPECT_EQ(one.count, 1u);
}

}  // namespace
}  // namespace rnicsim::sim::sweep

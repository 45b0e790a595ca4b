// SPDX-License-Identifier: Apache-2.0
// The chosen engine is used, the NIC loses the capabilities that the engine lacks, and a mismatch ends the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/base/kernel.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/nic.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/adapter.h"
#include "sim/bench/bench.h"
#include "sim/bench/runner.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/describe.h"
#include "sim/engine_choice.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

Config with(std::vector<std::string> sets) { return load_config("cx5-100g", "back-to-back", sets); }

class EngineChoice : public testing::Test {
 protected:
  EngineChoice() : folder_(fs::temp_directory_path() / ("rnicsim-engine-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~EngineChoice() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

// For builds that include rtl/.
class RtlChoice : public EngineChoice {
 protected:
  void SetUp() override {
    const auto error = error_of([] { with({"engine.kind=rtl"}); });
    if (error == "no error") return;
    EXPECT_EQ(error, "engine.kind: rtl: this rnicsim was built without Verilator, and so without rtl/");
    GTEST_SKIP() << error;
  }
};

TEST_F(EngineChoice, TheModelsUnlessToldOtherwise) {
  const auto config = with({});
  EXPECT_TRUE(config.engine.is_model());
  EXPECT_TRUE(config.nic.capabilities.invalidate);
  EXPECT_TRUE(config.nic.capabilities.windows);
  EXPECT_GT(config.nic.capabilities.max_qp, 256u);
  std::vector<std::string> sets{"link.latency=70ns"};
  EngineOptions{}.add_to(sets);
  EXPECT_EQ(sets.size(), 1u);
  EXPECT_THAT(describe(DescribeTopic::nic, {}), HasSubstr("engine.kind "));
}

TEST_F(EngineChoice, Mistakes) {
  EXPECT_EQ(error_of([] { with({"engine.kind=verilog"}); }), "engine.kind: 'verilog' is none of model, rtl, lockstep");
  EXPECT_THAT(error_of([] { with({"engine.clock=1"}); }), HasSubstr("engine.clock"));
  EXPECT_THAT(error_of([&] { Engines({}, folder_ / "waves.fst"); }),
              StartsWith("--fst: the C++ engine has no signals"));
  EXPECT_FALSE(fs::exists(folder_ / "waves.fst"));
}

TEST_F(RtlChoice, TakesWhatTheRtlLacks) {
  for (const std::string kind : {"rtl", "lockstep"}) {
    std::vector<std::string> sets{"engine.kind=model", "nic.capabilities.max_rd_atomic=4"};
    EngineOptions{kind, {}}.add_to(sets);
    const auto config = with(sets);
    EXPECT_EQ(config.engine.kind, kind);
    EXPECT_FALSE(config.nic.capabilities.invalidate);
    EXPECT_FALSE(config.nic.capabilities.windows);
    EXPECT_LT(config.nic.capabilities.max_qp, with({}).nic.capabilities.max_qp);
    EXPECT_EQ(config.nic.capabilities.max_rd_atomic, 4u);
  }
}

TEST_F(RtlChoice, TheResolvedConfigurationHasIt) {
  auto config = with({"engine.kind=rtl", "engine.clock=2ns"});
  std::ofstream(folder_ / "resolved.toml") << to_toml(config);
  auto again = load_config("cx5-100g", (folder_ / "resolved.toml").string(), {});
  EXPECT_EQ(again.engine.kind, "rtl");
  EXPECT_EQ(again.engine.clock, Duration{2'000});
  EXPECT_EQ(to_toml(again), to_toml(config));
}

// One host has the RTL engine and its capabilities; the other hosts keep theirs.
TEST_F(RtlChoice, OfAHost) {
  auto config = with({"hosts.h1.engine=lockstep"});
  EXPECT_TRUE(config.engine.is_model());
  EXPECT_TRUE(config.nic_of(0).capabilities.invalidate);
  EXPECT_TRUE(config.engine_of(0).is_model());
  EXPECT_FALSE(config.nic_of(1).capabilities.invalidate);
  EXPECT_EQ(config.engine_of(1).kind, "lockstep");
  EXPECT_EQ(engines_text(config), "model, h1 lockstep");
  std::ofstream(folder_ / "resolved.toml") << to_toml(config);
  auto again = load_config("cx5-100g", (folder_ / "resolved.toml").string(), {});
  EXPECT_EQ(to_toml(again), to_toml(config));
  const auto all = with({"engine.kind=rtl", "hosts.h0.engine=model"});
  EXPECT_TRUE(all.nic_of(0).capabilities.invalidate);
  EXPECT_FALSE(all.nic_of(1).capabilities.invalidate);
}

TEST_F(RtlChoice, TwoHostsWithEnginesOfTheirOwn) {
  std::ofstream(folder_ / "w.toml") << "schema = 1\nset = { hosts.h1.engine = \"lockstep\" }\n[measure]\n"
                                    << "operations = 20\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"write\"\n"
                                    << "size = \"4 KiB\"\n";
  const auto prepared = bench::prepare({.workload = (folder_ / "w.toml").string()});
  System system("system", prepared.config);
  bench::Runner runner(system, prepared.workload, prepared.plan);
  EXPECT_EQ(runner.execute(), "");
  EXPECT_EQ(runner.flows()[0].operations, 20u);
  runner.close();
}

TEST_F(RtlChoice, EachHostHasItsWaves) {
  const EngineParams rtl{.kind = "rtl"};
  Engines engines(rtl, folder_ / "my.waves.fst");
  const auto factory = engines.factory("h3");
  EXPECT_TRUE(fs::exists(folder_ / "my.waves-h3.fst"));
  EXPECT_NE(factory({}), nullptr);
  engines.factory();
  EXPECT_TRUE(fs::exists(folder_ / "my.waves.fst"));
  Engines nowhere(rtl, folder_ / "none" / "waves.fst");
  EXPECT_THAT(error_of([&] { nowhere.factory("h0"); }), HasSubstr("none/waves-h0.fst: cannot be written"));
}

TEST_F(EngineChoice, AMismatchEndsABench) {
  std::ofstream(folder_ / "w.toml") << "schema = 1\n[measure]\nduration = \"1 s\"\n[[flow]]\nfrom = \"h0\"\n"
                                    << "to = \"h1\"\nop = \"write\"\nsize = \"8 B\"\n";
  const auto prepared = bench::prepare({.workload = (folder_ / "w.toml").string()});
  System system("system", prepared.config);
  auto& engines = system.engines();
  EXPECT_NO_THROW(engines.check());
  Duration told{};
  system.adapter(1).nic().blocks().rx.received.subscribe([&](const auto&) {
    if (engines.mismatch().empty()) told = now();
    engines.mismatched("h1", "what both did");
  });
  bench::Runner runner(system, prepared.workload, prepared.plan);
  EXPECT_EQ(runner.execute(), "h1: the RTL and the C++ core differ\nwhat both did");
  EXPECT_GT(told, Duration{});
  EXPECT_LT(now(), told + Duration{1'000'000});
  EXPECT_THROW(engines.check(), EngineMismatch);
  runner.close();
}

}  // namespace
}  // namespace rnicsim::sim

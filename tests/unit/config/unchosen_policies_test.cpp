// SPDX-License-Identifier: Apache-2.0
// Does one sentence name each parameter of a policy that is not selected, and no other parameter?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/config/config.h"

namespace rnicsim::sim {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
namespace fs = std::filesystem;

using Texts = std::vector<std::string>;

class UnchosenPolicies : public testing::Test {
 protected:
  UnchosenPolicies() : folder_(fs::temp_directory_path() / ("rnicsim-unchosen-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~UnchosenPolicies() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static Texts warnings(const Texts& sets, const std::string& topology = "star:2",
                        const std::string& nic = "cx5-100g") {
    return load_config(nic, topology, sets).warnings;
  }

  const fs::path folder_;
};

TEST_F(UnchosenPolicies, AParameterBesideAnotherControl) {
  EXPECT_THAT(warnings({"nic.congestion.dcqcn.rpg_ai_rate=10 Mb/s"}),
              ElementsAre("--set nic.congestion.dcqcn.rpg_ai_rate has no effect, because nic.congestion.control is "
                          "none"));
  EXPECT_THAT(warnings({"nic.congestion.control=swift", "nic.congestion.swift.base_target=30 us",
                        "nic.congestion.timely.beta=0.5", "nic.congestion.timely.t_low=60 us",
                        "nic.congestion.timely.t_low=70 us"}),
              ElementsAre("--set nic.congestion.timely.beta and 1 more of nic.congestion.timely have no effect, "
                          "because nic.congestion.control is swift"));
}

// The order of the two does not matter, and the last choice counts.
TEST_F(UnchosenPolicies, TheControlIsSelectedAfterItsParameter) {
  EXPECT_THAT(warnings({"nic.congestion.hpcc.eta=0.9", "nic.congestion.control=hpcc"}), IsEmpty());
  const Texts changed = {"nic.congestion.control=hpcc", "nic.congestion.hpcc.eta=0.9", "nic.congestion.control=none"};
  EXPECT_EQ(warnings(changed).size(), 1u);
}

// An option with the default value has no effect either.
TEST_F(UnchosenPolicies, ADefaultOfAnOption) { EXPECT_EQ(warnings({"nic.congestion.hpcc.eta=0.95"}).size(), 1u); }

TEST_F(UnchosenPolicies, OtherPoliciesToo) {
  EXPECT_THAT(warnings({"switch.flowlet.gap=20 us"}),
              ElementsAre("--set switch.flowlet.gap has no effect, because switch.path is ecmp"));
  EXPECT_THAT(warnings({"nic.port.dwrr.weights=3:15"}), ElementsAre(EndsWith("nic.port.scheduler is strict")));
  EXPECT_THAT(warnings({"switch.path=flowlet", "switch.flowlet.gap=20 us"}), IsEmpty());
}

TEST_F(UnchosenPolicies, AFileNamesTheLine) {
  const auto topology = file("t.toml", "base = \"star:2\"\n[nic.congestion.dcqcn]\nrpg_ai_rate = \"10 Mb/s\"\n");
  EXPECT_THAT(warnings({}, topology), ElementsAre(topology + ":3: nic.congestion.dcqcn.rpg_ai_rate has no effect, "
                                                             "because nic.congestion.control is none"));
  EXPECT_THAT(warnings({"nic.congestion.control=dcqcn"}, topology), IsEmpty());
  const auto nic = file("n.toml", "base = \"cx5-100g\"\n[nic.congestion.swift]\nbase_target = \"30 us\"\n");
  EXPECT_EQ(warnings({}, "star:2", nic).size(), 1u);
}

// A shipped profile's parameters are not the user's.
TEST_F(UnchosenPolicies, AShippedProfileIsSilent) {
  EXPECT_THAT(warnings({"nic.congestion.control=swift"}, "star:2", "cx5-100g-lossy"), IsEmpty());
}

// A resolved configuration has every parameter of all policies.
TEST_F(UnchosenPolicies, AResolvedConfigurationIsSilent) {
  auto config = load_config("cx5-100g", "star:2", Texts{"nic.congestion.control=swift"});
  EXPECT_THAT(warnings({}, file("again.toml", to_toml(config))), IsEmpty());
}

TEST_F(UnchosenPolicies, NamedProfiles) {
  const std::string hosts = "[[hosts]]\nname = \"a\"\nnic = \"fast\"\n[[hosts]]\nname = \"b\"\n";
  // A profile begins with the values of the group without a name.
  const auto chosen = file("a.toml", hosts + "[nics.fast]\ncongestion.control = \"hpcc\"\n");
  EXPECT_THAT(warnings({"nic.congestion.hpcc.eta=0.9"}, chosen), IsEmpty());
  const auto other = file("b.toml", hosts + "[nics.fast]\ncongestion.control = \"none\"\ncongestion.hpcc.eta = 0.9\n");
  EXPECT_THAT(warnings({"nic.congestion.control=hpcc"}, other),
              ElementsAre(EndsWith("nics.fast.congestion.hpcc.eta has no effect, because "
                                   "nics.fast.congestion.control is none")));
}

}  // namespace
}  // namespace rnicsim::sim

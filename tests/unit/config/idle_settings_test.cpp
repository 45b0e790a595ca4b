// SPDX-License-Identifier: Apache-2.0
// Does one sentence name each parameter without effect, and no other parameter?
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

class IdleSettings : public testing::Test {
 protected:
  IdleSettings() : folder_(fs::temp_directory_path() / ("rnicsim-idle-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~IdleSettings() override { fs::remove_all(folder_); }

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

TEST_F(IdleSettings, AParameterBesideAnotherControl) {
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
TEST_F(IdleSettings, TheControlIsSelectedAfterItsParameter) {
  EXPECT_THAT(warnings({"nic.congestion.hpcc.eta=0.9", "nic.congestion.control=hpcc"}), IsEmpty());
  const Texts changed = {"nic.congestion.control=hpcc", "nic.congestion.hpcc.eta=0.9", "nic.congestion.control=none"};
  EXPECT_EQ(warnings(changed).size(), 1u);
}

// An option with the default value has no effect either.
TEST_F(IdleSettings, ADefaultOfAnOption) { EXPECT_EQ(warnings({"nic.congestion.hpcc.eta=0.95"}).size(), 1u); }

TEST_F(IdleSettings, OtherPoliciesToo) {
  EXPECT_THAT(warnings({"switch.flowlet.gap=20 us"}, "leaf-spine:2,2,1"),
              ElementsAre("--set switch.flowlet.gap has no effect, because switch.path is ecmp"));
  EXPECT_THAT(warnings({"nic.port.dwrr.weights=3:15"}), ElementsAre(EndsWith("nic.port.scheduler is strict")));
  EXPECT_THAT(warnings({"switch.path=flowlet", "switch.flowlet.gap=20 us"}, "leaf-spine:2,2,1"), IsEmpty());
}

TEST_F(IdleSettings, AFileNamesTheLine) {
  const auto topology = file("t.toml", "base = \"star:2\"\n[nic.congestion.dcqcn]\nrpg_ai_rate = \"10 Mb/s\"\n");
  EXPECT_THAT(warnings({}, topology), ElementsAre(topology + ":3: nic.congestion.dcqcn.rpg_ai_rate has no effect, "
                                                             "because nic.congestion.control is none"));
  EXPECT_THAT(warnings({"nic.congestion.control=dcqcn"}, topology), IsEmpty());
  const auto nic = file("n.toml", "base = \"cx5-100g\"\n[nic.congestion.swift]\nbase_target = \"30 us\"\n");
  EXPECT_EQ(warnings({}, "star:2", nic).size(), 1u);
}

// A shipped profile's parameters are not the user's.
TEST_F(IdleSettings, AShippedProfileIsSilent) {
  EXPECT_THAT(warnings({"nic.congestion.control=swift"}, "star:2", "cx5-100g-lossy"), IsEmpty());
}

// A resolved configuration has every parameter of all policies.
TEST_F(IdleSettings, AResolvedConfigurationIsSilent) {
  auto config = load_config("cx5-100g", "star:2", Texts{"nic.congestion.control=swift"});
  EXPECT_THAT(warnings({}, file("again.toml", to_toml(config))), IsEmpty());
}

TEST_F(IdleSettings, NamedProfiles) {
  const std::string hosts = "[[hosts]]\nname = \"a\"\nnic = \"fast\"\n[[hosts]]\nname = \"b\"\n";
  // A profile begins with the values of the group without a name.
  const auto chosen = file("a.toml", hosts + "[nics.fast]\ncongestion.control = \"hpcc\"\n");
  EXPECT_THAT(warnings({"nic.congestion.hpcc.eta=0.9"}, chosen), IsEmpty());
  const auto other = file("b.toml", hosts + "[nics.fast]\ncongestion.control = \"none\"\ncongestion.hpcc.eta = 0.9\n");
  EXPECT_THAT(warnings({"nic.congestion.control=hpcc"}, other),
              ElementsAre(EndsWith("nics.fast.congestion.hpcc.eta has no effect, because "
                                   "nics.fast.congestion.control is none")));
}

// --- Parameters that another parameter makes ineffective.

// A parameter, the setting that gives it an effect, and the reason without that setting.
struct Switched {
  const char* name;
  Texts without;
  Texts with;
  const char* why;
};
void PrintTo(const Switched& switched, std::ostream* out) { *out << switched.name; }

class IdleByValue : public IdleSettings, public testing::WithParamInterface<Switched> {};

TEST_P(IdleByValue, IsNamedWithItsReason) {
  const auto& [name, without, with, why] = GetParam();
  const auto found = warnings(without);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found.front(), EndsWith(std::string("no effect, because ") + why));
  auto both = without;
  both.insert(both.end(), with.begin(), with.end());
  EXPECT_THAT(warnings(both), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Of, IdleByValue,
    testing::Values(
        Switched{"shared_buffer",
                 {"switch.pfc.priorities=1", "switch.buffer.lossless.xoff=30 KB"},
                 {"switch.buffer.size=1 MB"},
                 "switch.buffer.size is 0 B"},
        Switched{"lossless_profile",
                 {"switch.buffer.size=1 MB", "switch.buffer.lossless.xoff=30 KB"},
                 {"switch.pfc.priorities=1"},
                 "switch.pfc.priorities is 0"},
        Switched{"own_thresholds",
                 {"switch.pfc.priorities=1", "switch.buffer.size=1 MB", "switch.pfc.xoff=100 KB"},
                 {"switch.buffer.size=0 B"},
                 "switch.buffer.size is 1 MB"},
        Switched{"static_threshold",
                 {"switch.buffer.size=1 MB", "switch.buffer.lossy.static_th=30 KB"},
                 {"switch.buffer.mode=static"},
                 "switch.buffer.mode is dynamic"},
        Switched{"dynamic_threshold",
                 {"switch.buffer.size=1 MB", "switch.buffer.mode=static", "switch.buffer.lossy.dynamic_th=1"},
                 {"switch.buffer.mode=dynamic"},
                 "switch.buffer.mode is static"},
        Switched{"lossy_port",
                 {"switch.pfc.priorities=255", "switch.port_buffer=1 MB"},
                 {"switch.pfc.priorities=1"},
                 "switch.pfc.priorities is 255"},
        Switched{"pauses", {"switch.pfc.xoff=100 KB"}, {"switch.pfc.priorities=1"}, "switch.pfc.priorities is 0"},
        Switched{"watchdog",
                 {"switch.pfc.priorities=1", "switch.pfc.watchdog.action=forward"},
                 {"switch.pfc.watchdog.detection_time=1 ms"},
                 "switch.pfc.watchdog.detection_time is 0 ps"},
        Switched{"marks", {"switch.ecn.kmin=1 KB"}, {"switch.ecn.priorities=1"}, "switch.ecn.priorities is 0"},
        Switched{"own_marks",
                 {"switch.ecn.priorities=8", "switch.ecn.by_priority=3:1KB:2KB:1", "switch.ecn.kmin=1 KB"},
                 {"switch.ecn.priorities=9"},
                 "switch.ecn.by_priority is 3:1KB:2KB:1"},
        Switched{"marks_of_another_priority",
                 {"switch.ecn.priorities=1", "switch.ecn.by_priority=3:1KB:2KB:1"},
                 {"switch.ecn.priorities=8"},
                 "switch.ecn.priorities is 1"},
        Switched{"lossless_marks",
                 {"switch.ecn.priorities=1", "switch.pfc.priorities=1", "switch.ecn.drop_not_ect=true"},
                 {"switch.ecn.priorities=3"},
                 "switch.pfc.priorities is 1"},
        Switched{"map_of_dscps",
                 {"switch.trust=pcp", "switch.dscp_priority=26:3"},
                 {"switch.trust=dscp"},
                 "switch.trust is pcp"},
        Switched{"map_of_pcps", {"nic.port.pcp_priority=3:4"}, {"nic.port.trust=pcp"}, "nic.port.trust is dscp"},
        Switched{"pauses_of_a_nic",
                 {"nic.receive_buffer.xoff=100 KiB", "nic.receive_buffer.xon=90 KiB"},
                 {"nic.receive_buffer.pfc=1"},
                 "nic.receive_buffer.pfc is 0"},
        Switched{"notification_point",
                 {"nic.congestion.np.enable=0", "nic.congestion.np.delay=1 us"},
                 {"nic.congestion.np.enable=1"},
                 "nic.congestion.np.enable is 0"},
        Switched{"moderation",
                 {"nic.congestion.np.min_time_between_cnps=0 us", "nic.congestion.np.moderation=qp"},
                 {"nic.congestion.np.min_time_between_cnps=1 us"},
                 "nic.congestion.np.min_time_between_cnps is 0 ps"},
        Switched{"slow_restart",
                 {"nic.congestion.cnp_on_retransmit=true"},
                 {"nic.congestion.control=dcqcn"},
                 "nic.congestion.control is none"},
        Switched{"acknowledgements",
                 {"nic.congestion.ack_every=1"},
                 {"nic.congestion.control=swift"},
                 "nic.congestion.control is none"},
        Switched{"acknowledgements_of_reads",
                 {"nic.congestion.control=dcqcn", "nic.congestion.ack_every=1"},
                 {"nic.transport.read_acks=true"},
                 "nic.congestion.control is dcqcn"},
        Switched{"own_timeouts",
                 {"nic.transport.rto_high=1 ms", "nic.adaptive_timeout=1 ms"},
                 {"nic.transport.rto_high=0 ms"},
                 "nic.transport.rto_high is 1 ms"},
        Switched{"adaptive_retransmission",
                 {"nic.adaptive_retransmission.dec_mode=half"},
                 {"nic.adaptive_retransmission.time_base=16 us"},
                 "nic.adaptive_retransmission.time_base is 0 ps"},
        Switched{"reordering",
                 {"nic.transport.place_early=false"},
                 {"nic.transport.reorder_window=64"},
                 "nic.transport.reorder_window is 0"},
        Switched{"timeouts",
                 {"nic.transport.rto_low_packets=4"},
                 {"nic.transport.rto_high=1 ms"},
                 "nic.transport.rto_high is 0 ps"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(IdleSettings, SettingsOfAGroupShareASentence) {
  EXPECT_THAT(warnings({"switch.ecn.kmin=1 KB", "switch.ecn.kmax=2 KB", "switch.pfc.xon=1 KB"}),
              ElementsAre("--set switch.ecn.kmin and 1 more of switch.ecn have no effect, because "
                          "switch.ecn.priorities is 0",
                          "--set switch.pfc.xon has no effect, because switch.pfc.priorities is 0"));
}

TEST_F(IdleSettings, ATopologyWithoutWhatTheSettingNeeds) {
  EXPECT_THAT(warnings({"switch.ecn.priorities=1"}, "back-to-back"),
              ElementsAre("--set switch.ecn.priorities has no effect, because the topology has no switch"));
  EXPECT_THAT(warnings({"switch.path=spray"}, "star:3"),
              ElementsAre("--set switch.path has no effect, because the topology has one path between any two hosts"));
  EXPECT_THAT(warnings({"switch.path=spray"}, "leaf-spine:2,2,1"), IsEmpty());
}

// A profile inherits the value, and gives it an effect.
TEST_F(IdleSettings, AProfileThatUsesTheValue) {
  const std::string base = "base = \"star:2\"\n";
  const auto marks =
      file("c.toml", base + "switches.s0.type = \"marking\"\n[switch_types.marking]\necn.priorities = 1\n");
  EXPECT_THAT(warnings({"switch.ecn.kmin=1 KB"}, marks), IsEmpty());
  const auto none = file("d.toml", base + "switches.s0.type = \"other\"\n[switch_types.other]\nlatency = \"1 us\"\n");
  EXPECT_EQ(warnings({"switch.ecn.kmin=1 KB"}, none).size(), 1u);
}

}  // namespace
}  // namespace rnicsim::sim

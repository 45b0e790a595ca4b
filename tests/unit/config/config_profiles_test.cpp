// SPDX-License-Identifier: Apache-2.0
// Each host, device, switch and cable has the profile that it names; a mistake gives one clear line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/host_record.h"
#include "sim/config/nic_profile.h"
#include "sim/config/sized_topology.h"
#include "sim/describe.h"
#include "sim/results/results_json.h"

namespace rnicsim::sim {
namespace {

using namespace rnicsim::literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kTwo = "[[hosts]]\nname = \"a\"\nnic = \"fast\"\n[[hosts]]\nname = \"b\"\n";

class ConfigProfiles : public testing::Test {
 protected:
  ConfigProfiles() : folder_(fs::temp_directory_path() / ("rnicsim-profiles-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ConfigProfiles() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  Config load(const std::string& text, const std::vector<std::string>& sets = {}) {
    return load_config("cx5-100g", file("test.toml", text), sets);
  }
  std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
    try {
      load(text, sets);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  // A written configuration must be read as the same.
  void expect_round_trip(Config& config) {
    const auto written = to_toml(config);
    auto again = load_config("cx5-100g", file("again.toml", written), {});
    EXPECT_EQ(to_toml(again), written);
    EXPECT_EQ(parameters_json(again), parameters_json(config));
  }

  fs::path folder_;
};

TEST_F(ConfigProfiles, OfNics) {
  auto config = load(std::string(kTwo) +
                     "[[devices]]\nhost = \"b\"\nnic = \"cx3-40g\"\n"
                     "[nic]\nport.rate = \"50 Gb/s\"\nloopback.rate = \"99 Gb/s\"\n"
                     "[nics.fast]\nbase = \"cx6-200g\"\npcie.read_latency = \"321 ns\"\n");
  EXPECT_EQ(config.nic_of(0).port.rate, 200_Gbps);
  EXPECT_EQ(config.nic_of(0).dma.read_latency, 321_ns);
  EXPECT_EQ(config.nic_of(1).port.rate, 50_Gbps);
  EXPECT_EQ(config.nic_of(1).dma.read_latency, config.nic.dma.read_latency);
  EXPECT_EQ(config.nic_of(2).port.rate, 40_Gbps);
  expect_round_trip(config);
  EXPECT_EQ(parameters_json(config)["nics.fast.pcie.read_latency"], "321 ns");
  EXPECT_EQ(parameters_json(config)["hosts.a.nic"], "fast");
  EXPECT_EQ(parameters_json(config)["devices.b:1.nic"], "cx3-40g");
}

// A profile without a base is the default plus its own settings, whatever sets the default, and wherever the profile
// stands.
TEST_F(ConfigProfiles, WithoutABase) {
  const auto config = load(std::string(kTwo) + "[nics.fast]\nport.rate = \"25 Gb/s\"\n",
                           {"nic.pcie.read_latency=777ns", "nics.fast.pcie.read_internal=88ns"});
  EXPECT_EQ(config.nic_of(0).port.rate, 25_Gbps);
  EXPECT_EQ(config.nic_of(0).dma.read_latency, 777_ns);
  EXPECT_EQ(config.nic_of(0).dma.read_internal, 88_ns);
  EXPECT_EQ(config.nic_of(1).port.rate, 100_Gbps);
}

TEST_F(ConfigProfiles, OneOnTopOfAnother) {
  const auto config =
      load(std::string(kTwo) +
           "[nics.fast]\nbase = \"middle\"\n[nics.middle]\nbase = \"cx6-200g\"\nport.rate = \"150 Gb/s\"\n");
  EXPECT_EQ(config.nic_of(0).port.rate, 150_Gbps);
  EXPECT_EQ(config.profiles.nics.by_name.size(), 1u) << "a base that nobody has is no profile of the run";
  // A changed profile of the installation keeps its name.
  const auto changed =
      load("base = \"back-to-back\"\n", {"hosts.h[0-1].nic=cx6-200g", "nics.cx6-200g.port.rate=10Gb/s"});
  for (const std::size_t host : {0, 1}) {
    EXPECT_EQ(changed.nic_of(host).port.rate, 10_Gbps);
    EXPECT_EQ(changed.nic_of(host).units.read_response, 72_ns);
  }
  // A profile file beside the topology's file works, too.
  file("mine.toml", "[nic]\nport.rate = \"33 Gb/s\"\n");
  EXPECT_EQ(load(std::string(kTwo) + "[nics.fast]\nbase = \"mine.toml\"\n").nic_of(0).port.rate,
            BitRate{33'000'000'000});
}

TEST_F(ConfigProfiles, OfHostsSwitchesAndCables) {
  auto config = load(
      "[[hosts]]\nname = \"a\"\ntype = \"slow\"\n[[hosts]]\nname = \"b\"\n[[devices]]\nhost = \"a\"\n"
      "[[switches]]\nname = \"s\"\ntype = \"cheap\"\n[[switches]]\nname = \"t\"\n"
      "[[cables]]\nfrom = \"a\"\nto = \"s\"\nlink = \"long\"\n[[cables]]\nfrom = \"s\"\nto = \"t\"\nport = \"wide\"\n"
      "[[cables]]\nfrom = \"b\"\nto = \"t\"\nport = \"wide\"\n"
      "[host_types.slow]\nmmio_write_latency = \"1 us\"\n[switch_types.cheap]\nlatency = \"2 us\"\n"
      "[links.long]\nlatency = \"5 us\"\n[ports.wide]\nrate = \"400 Gb/s\"\n");
  EXPECT_EQ(config.host_of(0).mmio_write_latency, 1_us);
  EXPECT_EQ(config.host_of(1).mmio_write_latency, config.host.mmio_write_latency);
  EXPECT_EQ(config.switch_of(0).latency, 2_us);
  EXPECT_EQ(config.switch_of(1).latency, config.switches.latency);
  EXPECT_EQ(config.link_of(0).latency, 5_us);
  EXPECT_EQ(config.link_of(1).latency, config.link.latency);
  EXPECT_EQ(config.port_of(0).rate, 100_Gbps);
  EXPECT_EQ(config.port_of(1).rate, 400_Gbps);
  EXPECT_EQ(config.nic_of(1).port.rate, 400_Gbps) << "the NIC's port is its cable's";
  EXPECT_EQ(config.nic_of(2).port.rate, 100_Gbps);
  expect_round_trip(config);
}

TEST_F(ConfigProfiles, ChosenByOptions) {
  auto config =
      load("base = \"leaf-spine:2,2,2\"\n[hosts.\"h[0-1]\"]\nnic = \"fast\"\n[nics.fast]\nbase = \"cx6-200g\"\n",
           {"hosts.h1.nic=cx5-100g", "switches.spine1.type=slow", "switch_types.slow.latency=1us",
            "cables.spine0-leaf1.link=long", "links.long.latency=3us", "hosts.h2.nic=cx3-40g"});
  EXPECT_EQ(config.nic_of(0).port.rate, 200_Gbps);
  EXPECT_EQ(config.nic_of(1).port.rate, 100_Gbps);
  EXPECT_EQ(config.nic_of(2).port.rate, 40_Gbps);
  EXPECT_EQ(config.switch_of(3).latency, 1_us);
  for (std::size_t cable = 0; cable < config.topology.cables.size(); ++cable)
    EXPECT_EQ(config.link_of(cable).latency, cable == 6 ? 3_us : config.link.latency) << cable;
  expect_round_trip(config);
}

TEST_F(ConfigProfiles, ManyOnTopOfEachOther) {
  std::string text = std::string(kTwo) + "[nics.fast]\nbase = \"x0\"\n";
  for (int i = 0; i < 20'000; ++i)
    text += "[nics.x" + std::to_string(i) + "]\nbase = \"x" + std::to_string(i + 1) + "\"\n";
  EXPECT_THAT(error_of(text), HasSubstr("more than 32 bases"));
}

// Replacing hosts in a later file removes the choices of the old hosts.
TEST_F(ConfigProfiles, ReplacedWithTheirHosts) {
  file("lower.toml", std::string(kTwo) + "[nics.fast]\nbase = \"cx6-200g\"\n");
  const auto text = "base = \"lower\"\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n";
  EXPECT_THAT(error_of(text), HasSubstr("lower.toml:7: nics.fast: nothing in the topology has this profile"));
  EXPECT_EQ(error_of(std::string(text) + "nic = \"fast\"\n"), "no error");
}

TEST_F(ConfigProfiles, Mistakes) {
  const std::string fast = "[nics.fast]\n";
  const struct {
    std::string text;
    std::vector<std::string> sets;
    std::string error;
  } kMistakes[] = {
      {kTwo, {}, "test.toml:3: nic: there is no nics.fast"},
      {"base = \"back-to-back\"",
       {"hosts.h0.nic=cx6-200"},
       "--set hosts.h0.nic: there is no nics.cx6-200; did you mean cx6-200g?"},
      {kTwo + fast + "base = \"no\"\n", {}, "test.toml:7: nics.fast.base: there is no nics.no"},
      {kTwo + fast + "base = \"fast\"\n", {}, "nics.fast: the profile is its own base"},
      {kTwo + fast + "base = \"x\"\n[nics.x]\nbase = \"fast\"\n", {}, "nics.fast: the profile is its own base"},
      {kTwo + fast + "base = 3\n", {}, "test.toml:7: nics.fast.base: the name of another profile"},
      {kTwo + fast + "port.rate = \"1 ns\"\n", {}, "test.toml:7: nics.fast.port.rate: '1 ns' is not a rate"},
      {kTwo + fast + "port.rate = 3\n", {}, "nics.fast.port.rate: 3 has no unit"},
      {kTwo + fast + "port.rat = \"1 Gb/s\"\n",
       {},
       "there is no parameter nics.fast.port.rat; did you mean nics.fast.port.rate?"},
      {kTwo + fast + "port = 3\n", {}, "nics.fast.port is a group"},
      {kTwo + fast, {"nics.fats.port.rate=1Gb/s"}, "--set nics.fats.port.rate: nics.fats: nothing in the topology"},
      {kTwo + fast, {"nics.fast=cx6-200g"}, "--set nics.fast: nics.fast: a profile is a table"},
      {kTwo + fast, {"nics.a b.port.rate=1Gb/s"}, "a profile has a name of letters"},
      {kTwo + fast, {"nics..port.rate=1Gb/s"}, "a profile has a name of letters"},
      {kTwo + fast, {"hosts.c.nic=fast"}, "--set hosts.c.nic: no host is called 'c'"},
      {kTwo + fast, {"hosts.a.colour=red"}, "--set hosts.a.colour: there is no hosts.a.colour: use hosts.NAME.nic"},
      {kTwo + fast, {"hosts.nic=fast"}, "there is no hosts.nic"},
      {kTwo + fast, {"devices.a:1.nic=fast"}, "no device is called 'a:1'"},
      {kTwo + fast, {"switches.a.type=x"}, "no switch is called 'a'"},
      {kTwo + fast, {"cables.a-b.link=x"}, "there is no cable a-b"},
      {kTwo + fast, {"hosts.a.nic="}, "the name of a profile is needed"},
      {"[[hosts]]\nname = \"a\"\nnic = 3\n", {}, "test.toml:3: nic: the name of a profile is needed"},
      {"[[hosts]]\nname = \"a\"\nlink = \"x\"\n",
       {},
       "a host may have name, nic, type, engine, ipv4, ipv6 and mac, but no link"},
      {kTwo + fast, {"hosts.b.type=x"}, "--set hosts.b.type: there is no host_types.x"},
      {kTwo + fast, {"hosts.b.engine=x"}, "--set hosts.b.engine: engine.kind: 'x' is none of model"},
      {kTwo + fast + "[nics.fast.pcie]\nread_bytes = \"256 B\"\n",
       {},
       "nics.fast.pcie.read_bytes: 256 B is less than nics.fast.pcie.max_read_request, 512 B"},
      {kTwo + fast,
       {"host_types.x.completion_vectors=8", "hosts.a.type=x", "nics.fast.capabilities.max_eq=8"},
       "nics.fast.capabilities.max_eq: 8 does not follow, for other events, on host_types.x.completion_vectors, 8"},
      {"nics = 3\n", {}, "there is no parameter nics"},
  };
  for (const auto& [text, sets, error] : kMistakes) EXPECT_THAT(error_of(text, sets), HasSubstr(error)) << text;
}

TEST_F(ConfigProfiles, TwoNicsOfACableHaveOneRate) {
  const std::string text =
      std::string(kTwo) + "[[cables]]\nfrom = \"a\"\nto = \"b\"\n[nics.fast]\nbase = \"cx6-200g\"\n";
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("cables.a-b: the ends do not match"), HasSubstr("200 Gb/s"),
                                    HasSubstr("100 Gb/s"), HasSubstr("cables.a-b.port")));
  const auto config = load(text, {"cables.a-b.port=slow", "ports.slow.rate=100Gb/s"});
  EXPECT_EQ(config.nic_of(0).port.rate, 100_Gbps);
}

TEST_F(ConfigProfiles, AreDescribed) {
  const RunOptions run{
      .topology = file("test.toml", std::string(kTwo) + "[nics.fast]\nbase = \"cx6-200g\"\n[[cables]]\nfrom = \"a\"\n"
                                                        "to = \"b\"\nlink = \"long\"\nport = \"p\"\n"
                                                        "[links.long]\nlatency = \"1 us\"\n[ports.p]\n"),
      .sets = {}};
  const auto text = describe(DescribeTopic::everything, run);
  EXPECT_THAT(text, ContainsRegex("host +a .*  nic fast\n"));
  EXPECT_THAT(text, HasSubstr("cable a - b  link long  port p\n"));
  EXPECT_THAT(text, ContainsRegex("nics\\.fast\\.port\\.rate +rate +200 Gb/s  "));
  EXPECT_THAT(text, ContainsRegex("links\\.long\\.latency +time +1 us  "));
  EXPECT_THAT(text, ContainsRegex("ports\\.p\\.rate +rate +100 Gb/s  "));
}

// A NIC's file is loaded before the topology.
TEST_F(ConfigProfiles, ChosenWhereThereAreNoHosts) {
  const auto nic = file("nic.toml", "[hosts.h0]\nnic = \"cx6-200g\"\n");
  try {
    load_config(nic, "back-to-back", {});
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nic.toml:2: there are no hosts yet"));
  }
}

// librnicsim and Python load the default NIC; other settings of a file have no effect there.
TEST_F(ConfigProfiles, OfAFileThatIsANicsToo) {
  const auto path = file("nic.toml", "[nic]\nport.rate = \"7 Gb/s\"\n[nics.fast]\nport.rate = \"1 Gb/s\"\n");
  EXPECT_EQ(load_nic_profile(path).port.rate, BitRate{7'000'000'000});
}

// --- Topologies by name and size.
TEST(SizedTopologies, HaveTheirNodes) {
  const struct {
    const char* name;
    std::size_t hosts, switches, cables;
  } kSizes[] = {{"star:2", 2, 1, 2},
                {"star:4096", 4096, 1, 4096},
                {"leaf-spine:2,2,8", 16, 4, 20},
                {"leaf-spine:1,1,2", 2, 2, 3},
                {"fat-tree:2", 2, 5, 6},
                {"fat-tree:4", 16, 20, 48},
                {"fat-tree:16", 1024, 320, 3072},
                {"fat-tree:24", 3456, 720, 10368}};
  for (const auto& [name, hosts, switches, cables] : kSizes) {
    const auto topology = *sized_topology(name);
    EXPECT_EQ(topology.interfaces.size(), hosts) << name;
    EXPECT_EQ(topology.switches.size(), switches) << name;
    EXPECT_EQ(topology.cables.size(), cables) << name;
    EXPECT_EQ(topology.find("h1"), 1u);
  }
  EXPECT_FALSE(sized_topology("back-to-back"));
  EXPECT_FALSE(sized_topology("./star:2.toml"));
  const auto tree = *sized_topology("fat-tree:4");
  EXPECT_EQ(tree.node_name(16), "edge0");
  EXPECT_EQ(tree.node_name(24), "agg0");
  EXPECT_EQ(tree.node_name(32), "core0");
}

TEST(SizedTopologies, Mistakes) {
  for (const char* bad : {"star:", "star:1", "star:4097", "star:x", "star:4,4", "star:-4", "leaf-spine:2,2",
                          "leaf-spine:2,2,0", "leaf-spine:1024,1,1", "leaf-spine:64,64,65", "leaf-spine:1,2,2,2",
                          "leaf-spine:99999999999,1,1", "fat-tree:3", "fat-tree:0", "fat-tree:26", "fat-tree:4,"})
    EXPECT_THROW(sized_topology(bad), ConfigError) << bad;
}

TEST(SizedTopologies, NoTwoInterfacesShareAnAddress) {
  std::set<std::string> identities;
  std::set<std::uint16_t> lids;
  for (std::uint32_t host = 0; host < kMaxHosts; ++host)
    for (std::uint32_t device = 0; device < abi::kMaxDevices; ++device) {
      const auto interface = default_interface(host, "h", device);
      for (const auto& text : {ipv4_text(interface), ipv6_text(interface), mac_text(interface)})
        EXPECT_TRUE(identities.insert(text).second) << text;
      EXPECT_TRUE(lids.insert(interface.lid).second) << interface.lid;
      EXPECT_LT(interface.lid, 0xc000);
    }
  EXPECT_EQ(ipv4_text(default_interface(258, "h")), "10.0.2.2");
  EXPECT_EQ(ipv6_text(default_interface(258, "h", 1)), "fd00:1::102:1");
  EXPECT_EQ(mac_text(default_interface(258, "h")), "02:00:01:00:02:01");
}

}  // namespace
}  // namespace rnicsim::sim

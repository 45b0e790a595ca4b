// SPDX-License-Identifier: Apache-2.0
// Values in files and options reach the parameters; a mistake gives one clear line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/host_record.h"
#include "sim/config/loader.h"
#include "sim/describe.h"

namespace rnicsim::sim {
namespace {

using namespace rnicsim::literals;
using namespace std::string_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct PcieParams {
  Duration read_latency = 400_ns;
  ByteCount max_payload = 256_B;
  void describe(ParamVisitor& visit) {
    visit.param("read_latency", read_latency, "", {1000, 1e12});
    visit.param("max_payload", max_payload, "", {128, 4096});
  }
};
constexpr const char* kPaces[] = {"slow", "fast"};
struct TestParams {
  PcieParams pcie;
  BitRate rate = 100_Gbps;
  std::uint32_t units = 8;
  double share = 0.5;
  bool inline_scatter = false;
  std::string label = "none";
  std::string pace = "slow";
  void describe(ParamVisitor& visit) {
    visit.group("pcie", pcie);
    visit.param("rate", rate, "");
    visit.param("units", units, "", {1, 64});
    visit.param("share", share, "", {0, 1});
    visit.param("inline_scatter", inline_scatter, "");
    visit.param("pace", pace, "", kPaces);
    visit.param("label", label, "");
  }
};

class ConfigLoader : public testing::Test {
 protected:
  ConfigLoader() : folder_(fs::temp_directory_path() / ("rnicsim-config-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ConfigLoader() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  void load(const std::string& text) { loader_.load(DataKind::topology, file("test.toml", text)); }

  std::string error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string load_error(const std::string& text) {
    return error_of([&] { load(text); });
  }
  std::string set_error(const std::string& text) {
    return error_of([&] { loader_.set(text); });
  }

  fs::path folder_;
  TestParams params_;
  ParamList list_{params_};
  Topology topology_;
  Loader loader_{list_, topology_};
};

TEST_F(ConfigLoader, EveryKindOfValue) {
  load(
      "rate = \"40 Gb/s\"\nunits = 4\nshare = 0.25\ninline_scatter = true\nlabel = \"x\"\n"
      "[pcie]\nread_latency = \"1.5 us\"\nmax_payload = \"1 KiB\"\n");
  EXPECT_EQ(params_.rate, 40_Gbps);
  EXPECT_EQ(params_.units, 4u);
  EXPECT_EQ(params_.share, 0.25);
  EXPECT_TRUE(params_.inline_scatter);
  EXPECT_EQ(params_.label, "x");
  EXPECT_EQ(params_.pcie.read_latency, Duration{1'500'000});
  EXPECT_EQ(params_.pcie.max_payload, 1_KiB);
}

TEST_F(ConfigLoader, SetTakesUnitsWithAndWithoutSpace) {
  loader_.set("pcie.read_latency=600ns");
  EXPECT_EQ(params_.pcie.read_latency, 600_ns);
  loader_.set("pcie.read_latency=700 ns");
  EXPECT_EQ(params_.pcie.read_latency, 700_ns);
  loader_.set("units=2");
  EXPECT_EQ(params_.units, 2u);
}

TEST_F(ConfigLoader, BaseComesFirst) {
  file("lower.toml", "units = 2\nshare = 0.1\n");
  file("base.toml", "base = \"lower\"\nunits = 3\n");
  load("base = \"base\"\nlabel = \"top\"\n");
  EXPECT_EQ(params_.units, 3u);
  EXPECT_EQ(params_.share, 0.1);
  EXPECT_EQ(params_.label, "top");
}

TEST_F(ConfigLoader, BaseOfItself) {
  file("other.toml", "base = \"test\"\n");
  EXPECT_THAT(load_error("base = \"other\"\n"), HasSubstr("is its own base"));
}

TEST_F(ConfigLoader, UnknownKeySaysWhereAndWhatWasMeant) {
  EXPECT_THAT(load_error("units = 2\n[pcie]\nread_latecy = \"1 ns\"\n"),
              AllOf(HasSubstr("test.toml:3"), HasSubstr("pcie.read_latecy"), HasSubstr("mean pcie.read_latency?")));
  EXPECT_THAT(load_error("[pci]\nread_latency = \"1 ns\"\n"), HasSubstr("pcie.read_latency"));
  EXPECT_THAT(load_error("[nothing_like_it_at_all]\n"), HasSubstr("there is no parameter nothing_like_it_at_all"));
  EXPECT_THAT(set_error("pcie=4"), HasSubstr("group"));
}

TEST_F(ConfigLoader, MissingUnit) {
  EXPECT_THAT(load_error("[pcie]\nread_latency = 400\n"),
              AllOf(HasSubstr("test.toml:2: pcie.read_latency"), HasSubstr("no unit"), HasSubstr("400 ns")));
  EXPECT_THAT(set_error("pcie.read_latency=400"), HasSubstr("pcie.read_latency: '400' is not a time with its unit"));
  EXPECT_THAT(set_error("rate=100"), HasSubstr("100 Gb/s"));
}

TEST_F(ConfigLoader, WrongKind) {
  EXPECT_THAT(load_error("units = \"8\"\n"), HasSubstr("units"));
  EXPECT_THAT(load_error("units = 1.5\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(load_error("units = [1, 2]\n"), HasSubstr("kind: number"));
  EXPECT_THAT(load_error("inline_scatter = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(load_error("pcie = 1\n"), HasSubstr("group"));
  EXPECT_THAT(load_error("base = 3\n"), HasSubstr("base"));
}

TEST_F(ConfigLoader, OneOfSeveralWords) {
  load("pace = \"fast\"\n");
  EXPECT_EQ(params_.pace, "fast");
  EXPECT_THAT(load_error("pace = \"faster\"\n"), HasSubstr("pace: 'faster' is none of slow, fast"));
  EXPECT_THAT(set_error("pace="), HasSubstr("'' is none of slow, fast"));
  EXPECT_EQ(params_.pace, "fast");
}

TEST_F(ConfigLoader, AWholeNumberMayHaveAFraction) {
  load("units = 4.0\n");
  EXPECT_EQ(params_.units, 4u);
  loader_.set("units=6.0");
  EXPECT_EQ(params_.units, 6u);
  EXPECT_THAT(set_error("units=6.5"), HasSubstr("'6.5' is not a whole number"));
  EXPECT_THAT(set_error("units=65.0"), HasSubstr("'65.0' is out of range"));
  EXPECT_THAT(set_error("units=-6.0"), HasSubstr("'-6.0' is out of range"));
  EXPECT_THAT(set_error("units=1e300"), HasSubstr("'1e300' is out of range"));
}

// Units of 1024 bytes and of 1000 bytes; sizes are shown as they were probably written.
TEST_F(ConfigLoader, SizesOfBothKinds) {
  const std::pair<const char*, std::uint64_t> sizes[] = {{"512 B", 512}, {"1 KiB", 1024},  {"1.5 KiB", 1536},
                                                         {"1 KB", 1000}, {"1.5 KB", 1500}, {"4 KiB", 4096}};
  for (const auto& [text, bytes] : sizes) {
    loader_.set(std::string("pcie.max_payload=") + text);
    EXPECT_EQ(params_.pcie.max_payload.bytes, bytes) << text;
    EXPECT_EQ(to_string(params_.pcie.max_payload), text);
  }
  EXPECT_EQ(to_string(ByteCount{1'600'000}), "1.6 MB");
  EXPECT_EQ(to_string(ByteCount{128'000}), "128 KB");
  EXPECT_EQ(to_string(ByteCount{65'536}), "64 KiB");
  EXPECT_EQ(parse_byte_count("2 GB"), ByteCount{2'000'000'000});
  EXPECT_THAT(set_error("pcie.max_payload=1 kb"), HasSubstr("pcie.max_payload"));
}

TEST_F(ConfigLoader, OutOfRange) {
  EXPECT_THAT(load_error("units = 65\n"), HasSubstr("'65' is out of range: at least 1, at most 64"));
  EXPECT_THAT(load_error("units = -1\n"), HasSubstr("out of range"));
  EXPECT_THAT(load_error("units = 99999999999\n"), HasSubstr("out of range"));
  EXPECT_THAT(load_error("[pcie]\nmax_payload = \"64 B\"\n"), HasSubstr("at least 128 B, at most 4 KiB"));
  EXPECT_THAT(load_error("[pcie]\nread_latency = \"1 ps\"\n"), HasSubstr("at least 1 ns"));
  EXPECT_THAT(load_error("share = nan\n"), HasSubstr("share"));
  EXPECT_THAT(set_error("share=inf"), HasSubstr("out of range"));
  for (const char* value : {"nan ns", "inf ns", "-5 ns", "1e300 s", "0x10 ns", "", "ns", "5 parsecs"})
    EXPECT_THAT(set_error(std::string("pcie.read_latency=") + value), HasSubstr("pcie.read_latency")) << value;
}

TEST_F(ConfigLoader, GarbageSurvives) {
  EXPECT_THAT(load_error(std::string("units = 2\n\0", 11)), HasSubstr("not a text file"));
  EXPECT_THAT(load_error("units = \n"), HasSubstr("test.toml:1"));
  EXPECT_THAT(load_error("\xff\xfe\x80"), HasSubstr("test.toml:1"));
  EXPECT_THAT(load_error(std::string(5 << 20, 'x')), HasSubstr("larger than"));
  // The TOML library recurses for each part of a dotted key.
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_THAT(load_error("units = 2\n" + deep + " = 1"), HasSubstr(":2: more than 32 dots"));
  EXPECT_THAT(load_error("a = " + std::string(100'000, '[')), HasSubstr("test.toml"));
  EXPECT_THAT(load_error(std::string(100'000, 'k') + " = 1"), HasSubstr("no parameter"));
  EXPECT_THAT(set_error(std::string(1 << 20, '=')), HasSubstr("key=value"));
  EXPECT_THAT(set_error("units"), HasSubstr("key=value"));
  EXPECT_THAT(set_error("=3"), HasSubstr("key=value"));
  EXPECT_THAT(error_of([&] { loader_.load(DataKind::nic, "/dev/zero"); }), HasSubstr("not a file"));
  EXPECT_THAT(error_of([&] { loader_.load(DataKind::nic, folder_); }), HasSubstr("not a file"));
}

TEST_F(ConfigLoader, Topology) {
  load(
      "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\nipv4 = \"192.168.7.9/24\"\nmac = \"02:00:00:00:00:99\"\n"
      "[[cables]]\nfrom = \"b\"\nto = \"a\"\n");
  ASSERT_EQ(topology_.interfaces.size(), 2u);
  EXPECT_EQ(ipv4_text(topology_.interfaces[0]), "10.0.0.1");
  EXPECT_EQ(ipv6_text(topology_.interfaces[0]), "fd00::1");
  EXPECT_EQ(mac_text(topology_.interfaces[0]), "02:00:00:00:00:01");
  EXPECT_EQ(ipv4_text(topology_.interfaces[1]), "192.168.7.9");
  EXPECT_EQ(topology_.interfaces[1].ipv4_prefix, 24);
  EXPECT_EQ(ipv6_text(topology_.interfaces[1]), "fd00::1:1");
  EXPECT_EQ(mac_text(topology_.interfaces[1]), "02:00:00:00:00:99");
  EXPECT_THAT(topology_.cables, testing::ElementsAre(std::pair(1u, 0u)));
}

TEST_F(ConfigLoader, TopologyMistakes) {
  const std::string two = "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n";
  EXPECT_THAT(load_error("[[hosts]]\n"), HasSubstr("needs a name"));
  const std::string named = "name = \"";
  for (const std::string& name : {"a b"s, "a/b"s, ""s, "."s, ".."s, ".a"s, "-x"s, std::string(64, 'a')}) {
    EXPECT_THAT(load_error("[[hosts]]\n" + named + name + "\"\n"), HasSubstr("test.toml:2: hosts.name"));
    EXPECT_THAT(load_error(two + "[[switches]]\n" + named + name + "\"\n"), HasSubstr("test.toml:6: switches.name"));
  }
  EXPECT_THAT(load_error("[[hosts]]\nname = \"a\"\ncolour = \"red\"\n"), HasSubstr("no colour"));
  EXPECT_THAT(load_error("[[hosts]]\nname = \"a\"\nipv4 = \"10.0.0\"\n"), HasSubstr("test.toml:3: hosts.ipv4"));
  EXPECT_THAT(load_error("[[hosts]]\nname = \"a\"\nipv4 = \"10.0.0.1/33\"\n"), HasSubstr("hosts.ipv4"));
  EXPECT_THAT(load_error("[[hosts]]\nname = \"a\"\nmac = \"03:00:00:00:00:01\"\n"), HasSubstr("one station"));
  EXPECT_THAT(load_error("[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"a\"\n"), HasSubstr("another host"));
  EXPECT_THAT(load_error(two + "[[cables]]\nfrom = \"a\"\n"), HasSubstr("needs 'to'"));
  EXPECT_THAT(load_error(two + "[[cables]]\nfrom = \"a\"\nto = \"c\"\n"), HasSubstr("no host is called 'c'"));
  EXPECT_THAT(load_error(two + "[[cables]]\nfrom = \"a\"\nto = \"a\"\n"), HasSubstr("one port"));
  EXPECT_THAT(load_error(two + "[[cables]]\nfrom = \"a\"\nto = \"b\"\nlength = 3\n"), HasSubstr("no length"));
  std::string many;
  for (int i = 0; i < 4097; ++i) many += "[[hosts]]\nname = \"h" + std::to_string(i) + "\"\n";
  EXPECT_THAT(load_error(many), HasSubstr("more than 4096 hosts"));
}

// Additional devices of all hosts are numbered behind the first devices, and switches behind them.
TEST_F(ConfigLoader, Devices) {
  const std::string hosts = "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n[[switches]]\nname = \"s\"\n";
  const std::string base = file("base.toml", hosts + "[[cables]]\nfrom = \"a\"\nto = \"s\"\n").string();
  load("base = \"" + base +
       "\"\n[[devices]]\nhost = \"b\"\n[[devices]]\nhost = \"a\"\n"
       "[[devices]]\nhost = \"b\"\nipv4 = \"192.168.7.9/24\"\n");
  ASSERT_EQ(topology_.interfaces.size(), 5u);
  EXPECT_EQ(topology_.hosts(), 2u);
  EXPECT_EQ(label_of(topology_.interfaces[2]), "b:1");
  EXPECT_EQ(ipv4_text(topology_.interfaces[2]), "10.1.1.1");
  EXPECT_EQ(ipv6_text(topology_.interfaces[2]), "fd00:1::1:1");
  EXPECT_EQ(mac_text(topology_.interfaces[2]), "02:00:00:01:01:01");
  EXPECT_EQ(topology_.interfaces[2].host, 1);
  EXPECT_EQ(label_of(topology_.interfaces[3]), "a:1");
  EXPECT_EQ(label_of(topology_.interfaces[4]), "b:2");
  EXPECT_EQ(ipv4_text(topology_.interfaces[4]), "192.168.7.9");
  EXPECT_EQ(topology_.find_host("b"), 1u);
  EXPECT_EQ(topology_.find("b:2"), 4u);
  EXPECT_EQ(topology_.find_host("b:2"), std::nullopt);
  EXPECT_THAT(topology_.cables, testing::ElementsAre(std::pair(0u, 5u)));
  EXPECT_EQ(topology_.node_name(5), "s");
}

TEST_F(ConfigLoader, DeviceMistakes) {
  const std::string two = "[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n";
  EXPECT_THAT(load_error(two + "[[devices]]\n"), HasSubstr("needs its host"));
  EXPECT_THAT(load_error(two + "[[devices]]\nhost = \"c\"\n"), HasSubstr("test.toml:6: no host is called 'c'"));
  EXPECT_THAT(load_error(two + "[[devices]]\nhost = \"a\"\nspeed = 3\n"), HasSubstr("no speed"));
  EXPECT_THAT(load_error(two + "[[devices]]\nhost = \"a\"\nipv4 = \"10.0.1.1/16\"\n"),
              HasSubstr("'10.0.1.1' already belongs to another device"));
  EXPECT_THAT(load_error(two + "[[cables]]\nfrom = \"a:1\"\nto = \"b\"\n"), HasSubstr("no host is called 'a:1'"));
  EXPECT_THAT(load_error(two + "[[devices]]\nhost = \"a\"\n[[cables]]\nfrom = \"a\"\nto = \"b\"\n"
                               "[[cables]]\nfrom = \"a:1\"\nto = \"b\"\n"),
              HasSubstr("one port"));
  std::string many = two;
  for (int i = 0; i < 8; ++i) many += "[[devices]]\nhost = \"a\"\n";
  EXPECT_THAT(load_error(many), HasSubstr("at most 8 devices"));
  std::string more;
  for (int i = 0; i < 4096; ++i) more += "[[hosts]]\nname = \"h" + std::to_string(i) + "\"\n";
  for (int i = 0; i < 4097; ++i) more += "[[devices]]\nhost = \"h" + std::to_string(i / 2) + "\"\n";
  EXPECT_THAT(load_error(more), HasSubstr("more than 8192 devices in all"));
}

TEST_F(ConfigLoader, ResolvedDevicesAreTheSame) {
  Config config = load_config("cx5-100g", "dual-rail", {});
  const std::string resolved = to_toml(config);
  Config again = load_config("cx5-100g", file("resolved.toml", resolved).string(), {});
  EXPECT_EQ(again.topology.interfaces.size(), 4u);
  EXPECT_EQ(again.topology.cables, config.topology.cables);
  EXPECT_EQ(to_toml(again), resolved);
}

TEST_F(ConfigLoader, OutOfBandNetworkOfARun) {
  RunOptions run{.topology = file("mine.toml", "base = \"back-to-back\"\n[network]\nlatency = \"30 us\"\n").string(),
                 .sets = {"network.rate=1Gb/s"}};
  Config config = load_config(run.nic, run.topology, run.sets);
  EXPECT_EQ(config.network.latency, 30_us);
  EXPECT_EQ(config.network.loopback_latency, NetworkParams{}.loopback_latency);
  EXPECT_EQ(config.network.rate, 1_Gbps);
  EXPECT_THAT(describe(DescribeTopic::topology, run), AllOf(ContainsRegex("network\\.latency +time +30 us  "),
                                                            ContainsRegex("network\\.rate +rate +1 Gb/s  ")));
  run.sets = {"network.latency=0ns"};
  EXPECT_THAT(error_of([&] { load_config(run.nic, run.topology, run.sets); }), HasSubstr("at least 1 ns"));
  run.sets = {"network.latencies=1us"};
  EXPECT_THAT(error_of([&] { load_config(run.nic, run.topology, run.sets); }), HasSubstr("mean network.latency?"));
}

TEST_F(ConfigLoader, WordsThatATextMayBeAreDescribed) {
  EXPECT_THAT(describe(DescribeTopic::nic, {}), ContainsRegex("nic\\.icrc .*\\(one of lazy, always\\)"));
}

TEST_F(ConfigLoader, ResolvedConfigurationGivesTheSameRun) {
  const std::vector<std::string> sets{"network.latency=30us", "network.loopback_latency=7us", "network.rate=1Gb/s",
                                      "link.latency=70ns"};
  Config config = load_config("cx5-100g", "back-to-back", sets);
  const std::string resolved = to_toml(config);
  Config again = load_config("cx5-100g", file("resolved.toml", resolved).string(), {});
  EXPECT_EQ(again.network.latency, 30_us);
  EXPECT_EQ(again.network.loopback_latency, 7_us);
  EXPECT_EQ(again.network.rate, 1_Gbps);
  EXPECT_EQ(again.topology.cables, config.topology.cables);
  EXPECT_EQ(to_toml(again), resolved);
}

TEST_F(ConfigLoader, UnknownNames) {
  EXPECT_THAT(error_of([] { find_data(DataKind::nic, "cx5-100"); }), HasSubstr("did you mean 'cx5-100g'?"));
  EXPECT_THAT(error_of([] { find_data(DataKind::topology, "torus"); }), HasSubstr("back-to-back"));
  EXPECT_THAT(error_of([] { find_data(DataKind::nic, "./none.toml"); }), HasSubstr("no such file"));
}

TEST(ConfigChoices, OfThePageSize) {
  const auto set = [](const std::string& text) -> std::string {
    const std::string sets[] = {"host.page_size=" + text};
    try {
      return to_string(load_config("cx5-100g", "back-to-back", sets).host.page_size);
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  for (const auto* good : {"4 KiB", "64 KiB", "2 MiB", "1 GiB"}) EXPECT_EQ(set(good), good);
  for (const auto* bad : {"0 B", "8 KiB", "4097 B", "2 GiB"})
    EXPECT_EQ(set(bad),
              "--set host.page_size: '" + std::string(bad) + "' is out of range: one of 4 KiB, 64 KiB, 2 MiB, 1 GiB");
  EXPECT_THAT(set("4096"), HasSubstr("unit"));
}

// --- Combinations that no hardware can have.
std::string refusal(const std::string& nic, const std::vector<std::string>& sets) {
  try {
    load_config(nic, "back-to-back", sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct Contradiction {
  std::vector<std::string> sets;
  std::string error;  // empty: the settings are compatible
};
const Contradiction kContradictions[] = {
    {{"nic.pcie.read_bytes=256B"}, "nic.pcie.read_bytes: 256 B is less than nic.pcie.max_read_request, 512 B"},
    {{"nic.pcie.max_read_request=4KiB", "nic.pcie.read_bytes=2KiB"},
     "nic.pcie.read_bytes: 2 KiB is less than nic.pcie.max_read_request, 4 KiB"},
    {{"nic.pcie.max_read_request=4KiB", "nic.pcie.read_bytes=4KiB"}, ""},
    {{"nic.pcie.posted_data=128B"}, "nic.pcie.posted_data: 128 B is less than nic.pcie.max_payload, 256 B"},
    {{"nic.pcie.posted_data=128B", "nic.pcie.max_payload=128B"}, ""},
    {{"nic.contexts.qpc.l0_entries=100"},
     "nic.contexts.qpc.l0_entries: 100 is not a multiple of nic.contexts.qpc.ways, 8"},
    {{"nic.contexts.cqc.l1_entries=1001"},
     "nic.contexts.cqc.l1_entries: 1001 is not a multiple of nic.contexts.cqc.ways, 8"},
    {{"nic.contexts.mpt.ways=7"}, "nic.contexts.mpt.l0_entries: 64 is not a multiple of nic.contexts.mpt.ways, 7"},
    {{"nic.contexts.mtt.l0_entries=5", "nic.contexts.mtt.l1_entries=6"}, ""},
    {{"nic.contexts.mtt.l1_entries=64"},
     "nic.contexts.mtt.l0_entries: 128 is more than the second level holds: nic.contexts.mtt.l1_entries, 64"},
    {{"nic.contexts.mtt.l1_entries=0"}, ""},
    {{"nic.send_wqes.entries=1023"}, "nic.send_wqes.entries: 1023 is not a multiple of nic.send_wqes.ways, 4"},
    {{"nic.send_wqes.entries=0"}, ""},
    {{"nic.send_wqes.entries=3"}, ""},
    {{"nic.capabilities.max_eq=4"},
     "nic.capabilities.max_eq: 4 does not follow, for other events, on host.completion_vectors, 4"},
    {{"nic.capabilities.max_eq=4", "host.completion_vectors=3"}, ""},
};

TEST(ConfigContradictions, AreOneLineWithThePaths) {
  for (const auto& [sets, error] : kContradictions) EXPECT_EQ(refusal("cx5-100g", sets), error) << sets[0];
}

TEST_F(ConfigLoader, AContradictionInAFileIsRefusedToo) {
  const auto nic = file("mine.toml", "base = \"cx5-100g\"\n[nic.pcie]\nread_bytes = \"256 B\"\n").string();
  EXPECT_EQ(refusal(nic, {}), "nic.pcie.read_bytes: 256 B is less than nic.pcie.max_read_request, 512 B");
  // The last setting counts.
  EXPECT_EQ(refusal(nic, {"nic.pcie.max_read_request=256B"}), "");
}

TEST(ConfigContradictions, NoProfileHasOne) {
  int profiles = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(RNICSIM_SOURCE_DIR) / "sim" / "nics")) {
    EXPECT_EQ(refusal(entry.path().string(), {}), "") << entry.path();
    ++profiles;
  }
  EXPECT_GE(profiles, 5);
}

TEST(ConfigChoices, OfWhatRegistersCanSay) {
  const std::string sizes = "one of 128 B, 256 B, 512 B, 1 KiB, 2 KiB, 4 KiB";
  for (const auto& [key, value, choices] :
       {std::tuple<std::string, std::string, std::string>{"nic.pcie.max_payload", "64 B", sizes},
        {"nic.pcie.max_payload", "384 B", sizes},
        {"nic.pcie.max_read_request", "1000 B", sizes},
        {"nic.pcie.max_read_request", "8 KiB", sizes},
        {"nic.pcie.read_completion_boundary", "96 B", "one of 64 B, 128 B"},
        {"nic.pcie.lanes", "3", "one of 1, 2, 4, 8, 12, 16, 32"},
        {"nic.capabilities.active_width", "3", "one of 1, 2, 4, 8, 16"},
        {"nic.capabilities.active_speed", "100", "one of 1, 2, 4, 8, 16, 32, 64, 128"}})
    EXPECT_EQ(refusal("cx5-100g", {key + "=" + value}),
              "--set " + key + ": '" + value + "' is out of range: " + choices);
}

}  // namespace
}  // namespace rnicsim::sim

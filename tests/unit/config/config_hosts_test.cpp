// SPDX-License-Identifier: Apache-2.0
// The host's profile is chosen independently of the NIC's, choices have the right precedence, and a mistake gives one
// clear line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/bench/bench.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/nic_profile.h"
#include "sim/describe.h"
#include "sim/results/results_json.h"

namespace rnicsim::sim {
namespace {

using namespace rnicsim::literals;
using testing::HasSubstr;
namespace fs = std::filesystem;

class ConfigHosts : public testing::Test {
 protected:
  ConfigHosts() : folder_(fs::temp_directory_path() / ("rnicsim-hosts-" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "nics");
    fs::create_directories(folder_ / "hosts");
  }
  ~ConfigHosts() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static Config on(const char* nic, std::string_view host, const std::vector<std::string>& sets = {}) {
    return load_config(nic, "back-to-back", sets, {}, host);
  }
  template <class Load>
  static std::string error_of(Load&& load) {
    try {
      load();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(ConfigHosts, EachShippedNicHasOne) {
  struct Pair {
    const char* nic;
    const char* host;
    Duration read_latency, write_latency, mmio;
  };
  for (const auto& [nic, host, read_latency, write_latency, mmio] :
       {Pair{"cx5-100g", "xeon-gen3", 403_ns, 150_ns, 170_ns},
        {"cx3-40g", "xeon-e5", 640_ns, 150_ns, 170_ns},
        {"connectib-2xfdr", "xeon-e5v3", 403_ns, 150_ns, 170_ns},
        {"cx6-200g", "xeon-gen4", 400_ns, 140_ns, 150_ns},
        {"cx7-400g", "xeon-gen4", 400_ns, 140_ns, 150_ns}}) {
    const auto config = on(nic, "");
    EXPECT_EQ(config.host_profile, host) << nic;
    EXPECT_EQ(config.nic.dma.read_latency, read_latency) << nic;
    EXPECT_EQ(config.nic.dma.write_latency, write_latency) << nic;
    EXPECT_EQ(config.host.mmio_write_latency, mmio) << nic;
  }
  EXPECT_EQ(on("connectib-2xfdr", "").host.mmio_line_interval, Duration{6250});
}

TEST_F(ConfigHosts, EachNicFitsIntoEachHost) {
  for (const auto& nic : data_names(DataKind::nic))
    for (const auto& host : data_names(DataKind::host)) {
      const auto config = on(nic.c_str(), host);
      EXPECT_EQ(config.host_profile, host);
      EXPECT_EQ(config.nic.dma.read_latency, on("cx5-100g", host).nic.dma.read_latency) << nic << ", " << host;
    }
}

TEST_F(ConfigHosts, WhatWins) {
  const auto nic = file("nics/mine.toml", "base = \"cx5-100g\"\n[nic.pcie]\nread_latency = \"111 ns\"\n");
  EXPECT_EQ(on(nic.c_str(), "").nic.dma.read_latency, 111_ns) << "more than the host that its base names";
  EXPECT_EQ(on(nic.c_str(), "epyc-gen4").nic.dma.read_latency, 700_ns) << "less than one that is chosen";
  EXPECT_EQ(on(nic.c_str(), "epyc-gen4", {"nic.pcie.read_latency=222ns"}).nic.dma.read_latency, 222_ns);

  const auto topology = file("two.toml", "base = \"back-to-back\"\nhost = \"epyc-gen4\"\n");
  EXPECT_EQ(load_config("cx5-100g", topology, {}).nic.dma.read_latency, 700_ns);
  EXPECT_EQ(load_config("cx5-100g", topology, {}, {}, "xeon-e5").nic.dma.read_latency, 640_ns);
  const auto parameters = file("more.toml", "base = \"two\"\n[nic.pcie]\nread_latency = \"333 ns\"\n");
  EXPECT_EQ(load_config("cx5-100g", parameters, {}).nic.dma.read_latency, 333_ns);
}

TEST_F(ConfigHosts, OfOneHost) {
  auto config = load_config(
      "cx5-100g", "star:5",
      std::vector<std::string>{"hosts.h0.type=epyc-gen4", "hosts.h1.type=mine", "host_types.mine.base=epyc-gen4",
                               "host_types.mine.pcie.read_latency=690ns", "hosts.h2.type=plain",
                               "host_types.plain.cpu.detect=1ns", "hosts.h3.nic=cx6-200g", "hosts.h1.nic=cx3-40g"});
  EXPECT_EQ(config.nic_of(0).dma.read_latency, 700_ns);
  EXPECT_EQ(config.host_of(0).mmio_write_latency, 150_ns);
  EXPECT_EQ(config.nic_of(1).dma.read_latency, 690_ns) << "whatever NIC it has";
  EXPECT_EQ(config.nic_of(1).dma.write_latency, 140_ns);
  EXPECT_EQ(config.nic_of(1).port.rate, 40_Gbps);
  EXPECT_EQ(config.nic_of(2).dma.read_latency, 403_ns) << "a type that says nothing of PCIe";
  EXPECT_EQ(config.host_of(2).cpu.detect, 1_ns);
  EXPECT_EQ(config.nic_of(3).dma.read_latency, 400_ns) << "as that NIC's profile names";
  EXPECT_EQ(config.nic_of(4).dma.read_latency, 403_ns);

  const auto written = to_toml(config);
  auto again = load_config("cx5-100g", file("again.toml", written), {});
  EXPECT_EQ(to_toml(again), written);
  EXPECT_EQ(parameters_json(again), parameters_json(config));
}

TEST_F(ConfigHosts, ChosenForAllItIsThatOfOtherNicsToo) {
  const std::vector<std::string> sets{"hosts.h1.nic=cx3-40g"};
  const auto config = load_config("cx5-100g", "star:2", sets, {}, "epyc-gen4");
  EXPECT_EQ(config.nic_of(0).dma.read_latency, 700_ns);
  EXPECT_EQ(config.nic_of(1).dma.read_latency, 700_ns);
}

TEST_F(ConfigHosts, OfAFileOfOnesOwn) {
  file("hosts/base.toml", "[host.cpu]\ndetect = \"5 ns\"\n");
  const auto mine = file("hosts/mine.toml", "base = \"base\"\n[nic.pcie]\nordered_write = \"7 ns\"\n");
  const auto config = on("cx5-100g", mine);
  EXPECT_EQ(config.host.cpu.detect, 5_ns);
  EXPECT_EQ(config.nic.dma.ordered_write, 7_ns);
  EXPECT_EQ(config.nic.dma.read_latency, 403_ns) << "what it does not say is as before";

  // A NIC's profile finds the host profile beside its own folder, alone or within a configuration.
  const auto nic = file("nics/mine.toml", "host = \"mine\"\n[nic.port]\nrate = \"7 Gb/s\"\n");
  EXPECT_EQ(on(nic.c_str(), "").nic.dma.ordered_write, 7_ns);
  EXPECT_EQ(load_nic_profile(nic).dma.ordered_write, 7_ns);
  EXPECT_EQ(load_nic_profile(find_data(DataKind::nic, "cx5-100g")).dma.read_latency, 403_ns);
}

TEST_F(ConfigHosts, MistakesAreTold) {
  const auto with = [&](const std::string& text) {
    const auto path = file("hosts/wrong.toml", text);
    return error_of([&] { on("cx5-100g", path); });
  };
  EXPECT_THAT(with("[nic.tx]\nlatency = \"1 ns\"\n"),
              HasSubstr("wrong.toml:2: nic.tx.latency: a host profile may have"));
  EXPECT_THAT(with("[host]\npage_siz = \"4 KiB\"\n"), HasSubstr("did you mean host.page_size?"));
  EXPECT_THAT(with("[nic.pcie]\nread_latency = 400\n"), HasSubstr("nic.pcie.read_latency: 400 has no unit"));
  EXPECT_THAT(with("host = \"xeon-e5\"\n"), HasSubstr("wrong.toml:1: a host profile names no host profile"));
  EXPECT_THAT(with("[[hosts]]\nname = \"a\"\n"), HasSubstr("a host profile has only parameters"));
  EXPECT_THAT(with("base = \"xeon-gen3\"\n"), HasSubstr("its base 'xeon-gen3' is not in the same folder"));
  EXPECT_THAT(error_of([] { on("cx5-100g", "epyc-gen"); }),
              HasSubstr("no host profile is called 'epyc-gen' (did you mean 'epyc-gen4'?)"));
  EXPECT_THAT(error_of([] { on("cx5-100g", "", {"hosts.h0.type=epyc-gen5"}); }), HasSubstr("did you mean epyc-gen4?"));
  EXPECT_THAT(error_of([] {
                on("cx5-100g", "", {"hosts.h0.type=xeon-e5", "host_types.xeon-e5.pcie.lanes=4"});
              }),
              HasSubstr("there is no parameter host_types.xeon-e5.pcie.lanes"));
  const auto nic = file("nics/lost.toml", "host = \"nowhere\"\n");
  EXPECT_THAT(error_of([&] { on(nic.c_str(), ""); }), HasSubstr("lost.toml:1: host: no host profile is called"));
  EXPECT_THAT(error_of([&] { load_nic_profile(nic); }), HasSubstr("lost.toml:1: host: 'nowhere' is not in"));
}

TEST_F(ConfigHosts, OfAWorkload) {
  bench::BenchOptions options;
  options.workload = "cal-7";
  EXPECT_EQ(bench::prepare(options).config.host_profile, "epyc-gen4");
  options.sets = {"host=xeon-e5"};
  EXPECT_EQ(bench::prepare(options).config.host_profile, "xeon-e5");
  options.host = "xeon-gen3";
  EXPECT_EQ(bench::prepare(options).config.host_profile, "xeon-gen3");
  options.sets = {"host.cpu.detect=3ns"};
  EXPECT_EQ(bench::prepare(options).config.host.cpu.detect, 3_ns);
}

TEST_F(ConfigHosts, DescribeSaysWhich) {
  const auto of = [](DescribeTopic topic, const char* host) {
    RunOptions options;
    options.host = host;
    return describe(topic, options);
  };
  EXPECT_THAT(of(DescribeTopic::nic, ""), HasSubstr("with the values of cx5-100g on xeon-gen3:"));
  EXPECT_THAT(of(DescribeTopic::nic, "epyc-gen4"), HasSubstr("with the values of cx5-100g on epyc-gen4:"));
  EXPECT_THAT(of(DescribeTopic::host, ""), HasSubstr("A host's parameters, with the values of xeon-gen3:"));
  EXPECT_THAT(of(DescribeTopic::host, ""), HasSubstr("epyc-gen4, xeon-e5, xeon-e5v3, xeon-gen3, xeon-gen4"));
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// A NIC profile without measurements is marked as such wherever it is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/nic_profile.h"
#include "sim/config/profiles/profile_notes.h"
#include "sim/describe.h"

namespace rnicsim::sim {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ProfileNotes : public testing::Test {
 protected:
  ProfileNotes() : folder_(fs::temp_directory_path() / ("rnicsim-notes-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ProfileNotes() override { fs::remove_all(folder_); }
  std::string file(const std::string& text) {
    std::ofstream(folder_ / "mine.toml") << text;
    return (folder_ / "mine.toml").string();
  }
  fs::path folder_;
};

TEST_F(ProfileNotes, OfTheShipped) {
  EXPECT_EQ(nic_text("cx7-400g"), "cx7-400g (extrapolated)");
  for (const auto* nic : {"cx3-40g", "connectib-2xfdr", "cx5-100g", "cx6-200g"}) EXPECT_EQ(nic_text(nic), nic);
}

TEST_F(ProfileNotes, OfABase) {
  EXPECT_TRUE(is_extrapolated(file("base = \"cx7-400g\"\n[nic.port]\nrate = \"300 Gb/s\"\n")));
  EXPECT_FALSE(is_extrapolated(file("base = \"cx7-400g\"\nextrapolated = false\n"))) << "somebody has measured it";
  EXPECT_EQ(load_config(file("base = \"cx7-400g\"\n"), "back-to-back", {}).nic.capabilities.vendor_part_id, 4129u);
}

TEST_F(ProfileNotes, MistakesAreTold) {
  const auto nic = file("extrapolated = \"yes\"\n");
  EXPECT_FALSE(is_extrapolated(nic));
  for (const auto load : {+[](const std::string& path) { load_config(path, "back-to-back", {}); },
                          +[](const std::string& path) { load_nic_profile(path); }})
    try {
      load(nic);
      FAIL() << "it was taken";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("mine.toml:1: extrapolated: true or false is needed"));
    }
}

TEST_F(ProfileNotes, DescribeTells) {
  RunOptions options;
  EXPECT_THAT(describe(DescribeTopic::nic, options), HasSubstr("cx6-200g, cx7-400g (extrapolated)\n"));
  EXPECT_THAT(describe(DescribeTopic::nic, options), HasSubstr("with the values of cx5-100g on"));
  options.nic = "cx7-400g";
  EXPECT_THAT(describe(DescribeTopic::nic, options), HasSubstr("with the values of cx7-400g (extrapolated) on"));
  options.nic = "cx5-100g";
  options.sets = {"hosts.h0.nic=cx7-400g", "hosts.h1.nic=cx6-200g", "cables.h0-h1.port=p", "ports.p.rate=200Gb/s"};
  EXPECT_THAT(describe(DescribeTopic::topology, options),
              testing::AllOf(HasSubstr("nic cx7-400g (extrapolated)\n"), HasSubstr("nic cx6-200g\n")));
}

}  // namespace
}  // namespace rnicsim::sim

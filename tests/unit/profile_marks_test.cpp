// Does each value of the shipped profiles say where it is from, and is that read?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/config/data_files.h"
#include "sim/config/profile_marks.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

using testing::Optional;

const MarkedSetting& named(const std::vector<MarkedSetting>& all, const std::string& path) {
  return *std::ranges::find(all, path, [](const MarkedSetting& of) { return of.setting.path; });
}

TEST(ProfileMarks, OfALine) {
  EXPECT_THAT(source_of("a = \"1 ns\"  # S: measured"), Optional(Source::measured));
  EXPECT_THAT(source_of("a = 1 #D"), Optional(Source::derived));
  EXPECT_THAT(source_of("a = 1   # E"), Optional(Source::estimated));
  EXPECT_THAT(source_of("a = \"# S: no\"  # E: of \"b\""), Optional(Source::estimated));
  for (const auto* line : {"a = 1", "a = 1 # as measured", "a = 1 # MPS", "a = 1 # Estimated", "a = \"# S\"", "", "#"})
    EXPECT_EQ(source_of(line), std::nullopt) << line;
}

TEST(ProfileMarks, EachLineOfTheShippedHasOne) {
  for (const auto kind : {DataKind::nic, DataKind::host})
    for (const auto& name : data_names(kind)) {
      const auto no_base = [](const std::string&) { return std::nullopt; };
      const auto files = read_with_bases(find_data(kind, name), no_base);
      for (const auto& [setting, source] : marked_settings(files))
        EXPECT_TRUE(source) << setting.where << ": " << setting.path << " has no mark S, D or E";
    }
}

TEST(ProfileMarks, TheLastOfEachParameterCounts) {
  const auto own = marked_settings("cx6-200g", "");
  EXPECT_EQ(named(own, "nic.pcie.generation").setting.text, "4");
  EXPECT_EQ(named(own, "nic.pcie.lanes").setting.text, "16") << "its base's";
  EXPECT_EQ(named(own, "nic.pcie.read_latency").setting.text, "400 ns") << "its host's";
  EXPECT_EQ(named(own, "host.mmio_write_latency").source, Source::estimated);
  const auto other = marked_settings("cx6-200g", "epyc-gen4");
  EXPECT_EQ(named(other, "nic.pcie.read_latency").setting.text, "700 ns");
  EXPECT_EQ(other.size(), own.size());
  const auto counts = count_marks(own);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], own.size());
  EXPECT_GT(counts[2], counts[0]) << "most is estimated";
}

}  // namespace
}  // namespace rnicsim::sim

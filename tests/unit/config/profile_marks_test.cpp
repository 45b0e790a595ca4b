// SPDX-License-Identifier: Apache-2.0
// Each value of the installed profiles names its source, and the marks can be read.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/config/data_files.h"
#include "sim/config/profiles/profile_marks.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

using testing::Optional;

const MarkedSetting& named(const std::vector<MarkedSetting>& all, const std::string& path) {
  return *std::ranges::find(all, path, [](const MarkedSetting& of) { return of.setting.path; });
}

std::optional<Source> source_of(std::string_view line) {
  const auto mark = mark_of(line);
  return mark ? std::optional(mark->source) : std::nullopt;
}

void each_shipped(const std::function<void(const MarkedSetting&)>& look) {
  for (const auto kind : {DataKind::nic, DataKind::host})
    for (const auto& name : data_names(kind)) {
      const auto no_base = [](const std::string&) { return std::nullopt; };
      for (const auto& setting : marked_settings(read_with_bases(find_data(kind, name), no_base))) look(setting);
    }
}

TEST(ProfileMarks, OfALine) {
  EXPECT_THAT(source_of("a = \"1 ns\"  # S: measured"), Optional(Source::measured));
  EXPECT_THAT(source_of("a = 1 #D"), Optional(Source::derived));
  EXPECT_THAT(source_of("a = 1   # E"), Optional(Source::estimated));
  EXPECT_THAT(source_of("a = \"# S: no\"  # E: of \"b\""), Optional(Source::estimated));
  for (const auto* line : {"a = 1", "a = 1 # as measured", "a = 1 # MPS", "a = 1 # Estimated", "a = \"# S\"", "", "#"})
    EXPECT_EQ(source_of(line), std::nullopt) << line;
  EXPECT_EQ(mark_of("a = 1  # S: 64 B idle: 1")->text, "64 B idle: 1");
}

TEST(ProfileMarks, BoundsOfAnEstimate) {
  const auto bounds = [](const char* line) {
    const auto mark = mark_of(line);
    if (!mark || !mark->bounds) return std::string("none");
    const auto& of = *mark->bounds;
    return fmt::format("{} {} {} {}: {}", of.low, of.high, of.unit, of.step, mark->text);
  };
  EXPECT_EQ(bounds("a = \"45 ns\"  # E 40..50 ns"), "40 50 ns 0: ");
  EXPECT_EQ(bounds("a = \"20 ns\"  # E 0.5..2 x: tuned to CAL-8"), "0.5 2 x 0: tuned to CAL-8");
  EXPECT_EQ(bounds("a = 12  # E 8..16"), "8 16  0: ");
  EXPECT_EQ(bounds("a = 1280  # E 1024..1280 by 4: whole sets"), "1024 1280  4: whole sets");
  EXPECT_EQ(bounds("a = \"64 KiB\"  # E 64..128 KiB by 4"), "64 128 KiB 4: ");
  const auto fixed = mark_of("a = 4  # E fixed: a divisor");
  EXPECT_TRUE(fixed && fixed->is_fixed && !fixed->bounds);
  EXPECT_EQ(fixed->text, "a divisor");
  for (const auto* line :
       {"a = 1 # E 40-50", "a = 1 # E 50..40", "a = 1 # E 40..", "a = 1 # E ..50", "a = 1 # E about 5",
        "a = 1 # S 1..2", "a = 1 # E 1..2 by 0", "a = 1 # E 1..2 by x", "a = 1 # E 1..1"})
    EXPECT_FALSE(mark_of(line)) << line;
}

TEST(ProfileMarks, EachLineOfTheShippedHasOne) {
  each_shipped([](const MarkedSetting& of) {
    EXPECT_TRUE(of.mark) << of.setting.where << ": " << of.setting.path << " has no mark S, D or E";
  });
}

TEST(ProfileMarks, EachEstimateOfTheShippedHasBoundsOrSaysWhyNot) {
  each_shipped([](const MarkedSetting& of) {
    if (!of.mark || of.mark->source != Source::estimated) return;
    EXPECT_TRUE(of.mark->bounds || (of.mark->is_fixed && !of.mark->text.empty()))
        << of.setting.where << ": " << of.setting.path << ": E 40..50 ns, E 0.5..2 x, or E fixed: why";
  });
}

TEST(ProfileMarks, TheLastOfEachParameterCounts) {
  const auto own = marked_settings("cx6-200g", "");
  EXPECT_EQ(named(own, "nic.pcie.generation").setting.text, "4");
  EXPECT_EQ(named(own, "nic.pcie.lanes").setting.text, "16") << "its base's";
  EXPECT_EQ(named(own, "nic.pcie.read_latency").setting.text, "400 ns") << "its host's";
  EXPECT_EQ(named(own, "host.mmio_write_latency").mark->source, Source::estimated);
  const auto other = marked_settings("cx6-200g", "epyc-gen4");
  EXPECT_EQ(named(other, "nic.pcie.read_latency").setting.text, "700 ns");
  EXPECT_EQ(other.size(), own.size());
  const auto counts = count_marks(own);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], own.size());
  EXPECT_GT(counts[2], counts[0]) << "most is estimated";
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Histories: changes of level, content of the database, and invalid files.
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/config/config_error.h"
#include "sim/history/change_points.h"
#include "sim/history/database.h"

namespace rnicsim::sim::history {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;

std::vector<std::size_t> places(const std::vector<double>& values) {
  std::vector<std::size_t> found;
  for (const auto& change : change_points(values)) found.push_back(change.at);
  return found;
}

TEST(ChangePoints, OfNumbersThatDoNotScatter) {
  EXPECT_THAT(places({}), IsEmpty());
  EXPECT_THAT(places({5, 5, 5, 5}), IsEmpty());
  EXPECT_THAT(places({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}), IsEmpty()) << "how doubles are rounded is no change";
  EXPECT_THAT(places({5, 5, 5, 7}), ElementsAre(3)) << "the last label alone is a level, too";
  EXPECT_THAT(places({5, 7, 7, 7}), ElementsAre(1));
  EXPECT_THAT(places({5, 5, 5, 7, 7, 7, 6, 6, 6}), ElementsAre(3, 6));
  EXPECT_THAT(places({1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}), ElementsAre(2, 4, 6, 8, 10)) << "not hidden by one another";
  EXPECT_THAT(places({5, 7}), IsEmpty()) << "of two nobody can tell";
  EXPECT_THAT(places({0, 0, 0, 1e18, 1e18}), ElementsAre(3));
}

TEST(ChangePoints, TheLevelsAndHowSureTheyAre) {
  const auto found = change_points(std::vector<double>{10, 10.2, 9.9, 10.1, 9.8, 12, 12.1, 11.9, 12.2, 11.8});
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].at, 5);
  EXPECT_NEAR(found[0].before, 10, 1e-9);
  EXPECT_NEAR(found[0].after, 12, 1e-9);
  EXPECT_LT(found[0].p, 1e-5);
}

// A generator with the same numbers on every machine: noise shows no more changes than the level allows.
TEST(ChangePoints, NoiseHasFew) {
  std::uint64_t state = 1;
  const auto uniform = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return double(state >> 11) / double(std::uint64_t{1} << 53);
  };
  int series_with_changes = 0;
  for (int series = 0; series < 400; ++series) {
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) {
      double sum = 0;
      for (int j = 0; j < 12; ++j) sum += uniform();
      values.push_back(100 + sum);
    }
    series_with_changes += !places(values).empty();
  }
  EXPECT_LE(series_with_changes, 12) << "1 % of 400, and some more by chance";
}

class HistoryFile : public ::testing::Test {
 protected:
  HistoryFile() {
    std::string name = (fs::temp_directory_path() / "history-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    file = folder / "history.sqlite";
  }
  ~HistoryFile() override { fs::remove_all(folder); }

  static std::vector<CaseResult> results(double rate, const std::string& outcome = "passed") {
    return {{"a", outcome, outcome == "passed" ? "" : "event 7", {{1, {{"rate", rate}}}, {2, {{"rate", rate + 2}}}}},
            {"b", "broken", "no end", {}}};
  }
  void add(const std::string& label, double rate, const std::string& outcome = "passed") {
    Database(folder, Database::Access::add).add(label, results(rate, outcome));
  }
  Contents contents() { return Database(folder, Database::Access::read).contents(); }
  std::string bytes() {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

  fs::path folder, file;
};

TEST_F(HistoryFile, KeepsLabelsInTheOrderOfTheirFirstChecks) {
  add("v2", 10);
  add("v1", 20, "failed");
  add("v2", 30);
  const auto found = contents();
  EXPECT_THAT(found.labels, ElementsAre("v2", "v1"));
  ASSERT_EQ(found.cases.size(), 2);
  EXPECT_THAT(found.cases[0].outcomes, ElementsAre(Pair(0, Pair("passed", "")), Pair(1, Pair("failed", "event 7"))));
  ASSERT_EQ(found.cases[0].numbers.size(), 1);
  const auto& samples = found.cases[0].numbers[0].samples;
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples[0].mean, 31) << "of the two seeds of the last check of v2";
  EXPECT_EQ(samples[0].least, 30);
  EXPECT_EQ(samples[0].most, 32);
  EXPECT_EQ(samples[1].mean, 21);
  EXPECT_THAT(found.cases[1].numbers, IsEmpty());
}

TEST_F(HistoryFile, WhatIsNoHistoryIsLeftAsItIs) {
  const auto expect_refused = [&](const std::string& why) {
    const auto before = bytes();
    for (const auto access : {Database::Access::add, Database::Access::read})
      EXPECT_THAT([&] { Database(folder, access); },
                  ThrowsMessage<ConfigError>(::testing::AllOf(HasSubstr(file.string() + ": "), HasSubstr(why),
                                                              EndsWith("; the file is not changed"))));
    EXPECT_EQ(bytes(), before);
  };
  put("something that is longer than the header of a database, and is none at all, whatever its name says of it ....");
  expect_refused("file is not a database");
  fs::remove(file);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "CREATE TABLE other(value)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  expect_refused("not a history of rnicsim");
  fs::remove(file);
  add("a", 1);
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA user_version = 9", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  expect_refused("the history has version 9; this rnicsim reads version 1");
}

TEST_F(HistoryFile, CutShortItIsRefused) {
  add("a", 1);
  const auto whole = bytes();
  for (std::size_t size = 1; size < whole.size(); size += 509) {
    put(whole.substr(0, size));
    EXPECT_THAT([&] { Database(folder, Database::Access::add); }, ::testing::Throws<ConfigError>()) << size;
    EXPECT_EQ(bytes().size(), size);
  }
}

// Damage is refused or harmless; it never ends the program in another way.
TEST_F(HistoryFile, WithBitsFlipped) {
  add("a", 1);
  const auto whole = bytes();
  for (std::size_t at = 0; at < whole.size(); at += 37) {
    auto damaged = whole;
    damaged[at] = char(damaged[at] ^ (1 << at % 8));
    put(damaged);
    try {
      Database(folder, Database::Access::read).contents();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file.string()));
    }
  }
}

TEST_F(HistoryFile, LockedByAnother) {
  add("a", 1);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  Database waiting(folder, Database::Access::add);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_THAT([&] { waiting.add("b", results(2)); },
              ThrowsMessage<ConfigError>(EndsWith("history.sqlite: database is locked; no data was written")));
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  waiting.add("c", results(3));
  EXPECT_THAT(contents().labels, ElementsAre("a", "c"));
}

TEST_F(HistoryFile, ThatIsNotThere) {
  EXPECT_THAT([&] { Database(folder, Database::Access::read); },
              ThrowsMessage<ConfigError>(HasSubstr("history.sqlite: unable to open database file")));
  EXPECT_FALSE(fs::exists(file));
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT([&] { Database(folder / "file", Database::Access::add); }, ::testing::Throws<ConfigError>());
}

}  // namespace
}  // namespace rnicsim::sim::history

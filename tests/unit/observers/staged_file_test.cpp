// SPDX-License-Identifier: Apache-2.0
// Files that are either complete or absent.
#include "sim/results/staged_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class StagedFiles : public testing::Test {
 protected:
  StagedFiles() {
    std::string name = (fs::temp_directory_path() / "rnicsim-staged-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~StagedFiles() override { fs::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }
  std::string text() const {
    std::ifstream in(folder_ / "file");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(StagedFiles, TakeTheirNameWhenTheyAreWhole) {
  {
    StagedFile file(folder_ / "file");
    file.write("first");
    EXPECT_EQ(text(), "");
    file.commit();
  }
  EXPECT_EQ(text(), "first");
  chmod((folder_ / "file").c_str(), 0640);
  StagedFile file(folder_ / "file");
  StagedFile moved(std::move(file));
  moved.write("second");
  EXPECT_EQ(text(), "first");
  moved.commit();
  EXPECT_EQ(text(), "second");
  EXPECT_EQ(fs::status(folder_ / "file").permissions(), fs::perms(0640));
  EXPECT_THAT(names(), ElementsAre("file"));
}

TEST_F(StagedFiles, AreGoneUnlessTheyAreWhole) {
  {
    StagedFile begun(folder_ / "file");
    StagedFile written(folder_ / "file");
    written.write("text");
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(StagedFiles, OfWhoIsKilledAreGone) {
  const int unnamed = open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(unnamed);
  const StagedFile file(folder_ / "file");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(StagedFiles, TwoOfOneName) {
  StagedFile first(folder_ / "file"), second(folder_ / "file");
  first.write("first");
  second.write("second");
  first.commit();
  second.commit();
  EXPECT_EQ(text(), "second");
  EXPECT_THAT(names(), ElementsAre("file"));
}

TEST_F(StagedFiles, Mistakes) {
  EXPECT_THROW(StagedFile{folder_}, ConfigError);
  EXPECT_THROW(StagedFile(folder_ / "none" / "file"), ConfigError);
  StagedFile full("/dev/full");
  EXPECT_THROW(full.write("text"), ConfigError);
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Path resolution on a host with its own folder: /…/here belongs to the host, and lies at /…/deep/there.
#include "sim/host/kernel/files/path_walk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rnicsim::clock {
namespace {

namespace fs = std::filesystem;
using Led = PathWalk::Led;

class Tree : public HostTree {
 public:
  explicit Tree(const std::string& base) : here_(base + "/here"), there_(base + "/deep/there") {}

  OwnFolder holding(std::string_view name) const override {
    const bool is_below = name.starts_with(here_) && (name.size() == here_.size() || name[here_.size()] == '/');
    if (!is_below) return {};
    return {.name = here_, .root = there_, .stripped = here_.size(), .shows_machine = true};
  }
  std::optional<Inside> inside(std::string_view path) const override {
    if (!path.starts_with(there_)) return std::nullopt;
    return Inside{here_, there_.size()};
  }
  std::optional<pid_t> find(pid_t number) const override {
    if (number != 1000) return std::nullopt;
    return ::getpid();
  }

 private:
  const std::string here_;
  const std::string there_;
};

class PathWalkTest : public ::testing::Test {
 protected:
  PathWalkTest() {
    char name[] = "/tmp/path-walk-XXXXXX";
    base_ = fs::canonical(::mkdtemp(name)).string();
    for (const char* folder : {"/here/machines/below", "/deep/there/folder/below", "/other"})
      fs::create_directories(base_ + folder);
    for (const char* file : {"/here/file", "/deep/there/file", "/deep/there/folder/file", "/other/file"})
      std::ofstream(base_ + file) << file;
    fs::create_symlink(base_ + "/here/machines", base_ + "/deep/there/machines");
    fs::current_path(base_ + "/other");
  }
  ~PathWalkTest() override {
    fs::current_path("/");
    fs::remove_all(base_);
  }

  struct Answer {
    Led led;
    std::string path;
    bool is_own;
    bool operator==(const Answer&) const = default;
    friend void PrintTo(const Answer& answer, std::ostream* out) {
      *out << int(answer.led) << ' ' << answer.path << (answer.is_own ? " (own)" : "");
    }
  };
  Answer lead(int folder, const std::string& given, Last last = Last::followed) const {
    const Tree tree(base_);
    char result[PATH_MAX] = "";
    PathWalk walk(tree, result);
    const Led led = walk.lead(folder, given, last);
    return {led, result, walk.is_own()};
  }
  Answer lead(const std::string& given, Last last = Last::followed) const { return lead(AT_FDCWD, given, last); }
  Answer own(const std::string& path) const { return {Led::elsewhere, base_ + "/deep/there" + path, true}; }
  Answer of_machine(const std::string& path, Led led = Led::elsewhere) const { return {led, base_ + path, false}; }
  int open(const std::string& path) const { return ::open((base_ + path).c_str(), O_RDONLY | O_DIRECTORY); }

  std::string base_;
};

TEST_F(PathWalkTest, AllSpellingsOfAFileLeadToOnePlace) {
  fs::create_symlink(base_ + "/here", base_ + "/other/link");
  fs::create_symlink("../here", base_ + "/other/relative");
  fs::create_symlink("link/folder", base_ + "/other/of_link");
  const int other = open("/other"), base = open("");
  const std::string fd = "/proc/self/fd/" + std::to_string(other);
  const std::string paths[] = {
      base_ + "/here/folder/file",
      base_ + "//here//folder///file",
      base_ + "/./here/./folder/./file",
      base_ + "/other/../here/folder/file",
      base_ + "/here/../here/folder/below/../file",
      "../here/folder/file",
      "./.././here/folder/file",
      "link/folder/file",
      "relative/folder/file",
      "of_link/file",
      "of_link/below/../file",
      "/proc/self/root" + base_ + "/here/folder/file",
      "/proc/self/cwd/../here/folder/file",
      "/proc/thread-self/cwd/../here/folder/file",
      "/proc/1000/cwd/../here/folder/file",
      "/proc/" + std::to_string(::getpid()) + "/cwd/../here/folder/file",
      fd + "/../here/folder/file",
      fd + "/link/folder/file",
      "/../.." + base_ + "/here/folder/file",
  };
  for (const auto& path : paths) EXPECT_EQ(lead(path), own("/folder/file")) << path;
  EXPECT_EQ(lead(other, "../here/folder/file"), own("/folder/file"));
  EXPECT_EQ(lead(other, "of_link/file"), own("/folder/file"));
  EXPECT_EQ(lead(base, "here/folder/file"), own("/folder/file"));
  EXPECT_EQ(lead("../here/new", Last::itself), own("/new"));
  EXPECT_EQ(lead(base_ + "/here"), own(""));
}

TEST_F(PathWalkTest, WhatTheKernelFindsByItselfStaysAsGiven) {
  for (const char* path : {"file", "./file", "../other/file", "/proc/self/cwd/file"}) {
    const Answer answer = lead(path);
    EXPECT_EQ(answer, of_machine("/other/file", Led::as_given)) << path;
  }
  const int folder = open("/deep/there/folder");
  EXPECT_EQ(lead(folder, "below/../file"), (Answer{Led::as_given, base_ + "/deep/there/folder/file", true}));
  EXPECT_EQ(lead(folder, "").led, Led::nowhere);  // the descriptor itself
  EXPECT_EQ(lead("/proc/self/fd/0").path, "/proc/self/fd/0");
  EXPECT_EQ(lead(-1, "file").led, Led::nowhere);
}

TEST_F(PathWalkTest, TheWayOutOfAnOwnFolderIsTheHosts) {
  const int folder = open("/deep/there/folder");
  EXPECT_EQ(lead(folder, "../../other/file"), of_machine("/other/file"));
  EXPECT_EQ(lead(base_ + "/here/../other/file"), of_machine("/other/file"));
  EXPECT_EQ(lead(base_ + "/deep/there/folder/../../other/file"), of_machine("/other/file"));
  fs::create_symlink("../../other/file", base_ + "/deep/there/folder/out");
  EXPECT_EQ(lead(folder, "out"), of_machine("/other/file"));
  EXPECT_EQ(lead(folder, "out", Last::itself), (Answer{Led::as_given, base_ + "/deep/there/folder/out", true}));
}

TEST_F(PathWalkTest, TheLastLinkIsFollowedOrNot) {
  fs::create_symlink(base_ + "/other/file", base_ + "/deep/there/link");
  const std::string path = base_ + "/here/link";
  EXPECT_EQ(lead(path), of_machine("/other/file"));
  EXPECT_EQ(lead(path, Last::itself), own("/link"));
  EXPECT_EQ(lead(path, Last::seen), own("/link"));
  fs::create_symlink(base_ + "/here/made_by_it", base_ + "/other/dangling");
  EXPECT_EQ(lead("dangling"), own("/made_by_it"));
  fs::create_symlink(base_ + "/here/folder", base_ + "/other/to_folder");
  EXPECT_EQ(lead("to_folder/", Last::seen), own("/folder/"));
  EXPECT_EQ(lead("to_folder", Last::seen), of_machine("/other/to_folder", Led::as_given));
}

// For the machine's files in such a folder, the host has links with the same names.
TEST_F(PathWalkTest, TheMachinesFilesAreSeenInTheHostsFolder) {
  const std::string machines = base_ + "/here/machines";
  EXPECT_EQ(lead(machines), of_machine("/here/machines"));
  EXPECT_EQ(lead(machines, Last::seen), of_machine("/here/machines"));
  EXPECT_EQ(lead(machines, Last::itself), own("/machines"));
  EXPECT_EQ(lead(machines + "/below"), of_machine("/here/machines/below"));
  EXPECT_EQ(lead(machines + "/below/../../file"), own("/file"));
  // The current directory, or an open folder, is there.
  const int folder = open("/here/machines");
  EXPECT_EQ(lead(folder, "below"), of_machine("/here/machines/below", Led::as_given));
  EXPECT_EQ(lead(folder, "../file"), own("/file"));
  EXPECT_EQ(lead(open("/here"), "file"), own("/file"));
}

TEST_F(PathWalkTest, ErrorsStayTheKernels) {
  const auto machine = [&](const std::string& path) { return of_machine(path, Led::as_given); };
  EXPECT_EQ(lead("missing/../../here/file"), machine("/other/missing/../../here/file"));
  EXPECT_EQ(lead("file/../../here/file"), machine("/other/file/../../here/file"));
  EXPECT_EQ(lead(base_ + "/here/missing/../file"), own("/missing/../file"));
  fs::create_symlink("circle", base_ + "/deep/there/circle");
  EXPECT_EQ(lead(base_ + "/here/circle/file"), own("/circle/file"));
  // rmdir refuses a path that ends with a dot.
  EXPECT_EQ(lead(base_ + "/here/folder/.", Last::itself), own("/folder/."));
  EXPECT_EQ(lead(base_ + "/here/file/", Last::itself), own("/file/"));
  const std::string longest = base_ + "/here/" + std::string(PATH_MAX - base_.size() - 8, 'x');
  EXPECT_EQ(lead(longest).led, Led::too_far);
  EXPECT_EQ(lead(std::string(PATH_MAX + 1, '/')).led, Led::nowhere);
  const int folder = open("/deep/there/folder/below");
  fs::remove(base_ + "/deep/there/folder/below");
  EXPECT_EQ(lead(folder, "file").led, Led::nowhere);
}

}  // namespace
}  // namespace rnicsim::clock

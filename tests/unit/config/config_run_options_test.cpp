// SPDX-License-Identifier: Apache-2.0
// The command line means what a user expects, and programs that cannot run are refused before the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/config/config_error.h"
#include "sim/config/host_names.h"
#include "sim/os/program_check.h"
#include "sim/run_options.h"

namespace rnicsim::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

Topology hosts(std::uint32_t count) {
  Topology topology;
  for (std::uint32_t i = 0; i < count; ++i)
    topology.interfaces.push_back(default_interface(i, "h" + std::to_string(i)));
  return topology;
}

template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunOptions, HostRanges) {
  const auto topology = hosts(12);
  EXPECT_THAT(expand_hosts("h3", topology), ElementsAre(3));
  EXPECT_THAT(expand_hosts("h[9-11]", topology), ElementsAre(9, 10, 11));
  for (const char* wrong : {"h[3-1]", "h[0-12]", "h[", "h[a-b]", "h[0-99999]", "[0-1", "h[0-1][0-1]", "x", ""})
    EXPECT_NE(error_of([&] { expand_hosts(wrong, topology); }), "no error") << wrong;
}

TEST(RunOptions, WordsAsAShellTakesThem) {
  EXPECT_THAT(split_command("a -b 'c  d' \"e f\" g\\ h ''"), ElementsAre("a", "-b", "c  d", "e f", "g h", ""));
  for (const char* wrong : {"", "   ", "a 'b", "a; b", "a | b", "a > b", "a $(b)", "a `b`", "a $RNICSIM_NOT_SET"})
    EXPECT_THAT(error_of([&] { split_command(wrong); }), HasSubstr("command '")) << wrong;
}

TEST(RunOptions, ProgramOnTwoHosts) {
  RunOptions options;
  resolve_commands({.on = {}, .program = {"sleep", "-x"}, .gdb = {"h1"}, .valgrind = {}}, hosts(2), options);
  ASSERT_EQ(options.commands.size(), 2u);
  EXPECT_EQ(options.commands[0].host, 0u);
  EXPECT_THAT(options.commands[0].argv, ElementsAre("sleep", "-x"));
  EXPECT_EQ(options.commands[0].executable.filename(), "sleep");
  EXPECT_EQ(options.commands[1].host, 1u);
  EXPECT_THAT(options.commands[1].argv, ElementsAre("sleep", "-x", "10.0.0.1"));
  EXPECT_THAT(options.gdb_hosts, ElementsAre(1));
}

TEST(RunOptions, ProgramsOnNamedHosts) {
  RunOptions options;
  resolve_commands({.on = {{"h1", "sleep 1"}, {"h[0-1]", "sleep 2"}}, .program = {}, .gdb = {}, .valgrind = {}},
                   hosts(2), options);
  ASSERT_EQ(options.commands.size(), 3u);
  EXPECT_EQ(options.commands[0].host, 1u);
  EXPECT_EQ(options.commands[1].host, 0u);
  EXPECT_EQ(options.commands[2].host, 1u);
}

TEST(RunOptions, Mistakes) {
  RunOptions options;
  const auto resolve = [&](RunArguments arguments, std::uint32_t count = 2) {
    return error_of([&] { resolve_commands(arguments, hosts(count), options); });
  };
  EXPECT_THAT(resolve({}), HasSubstr("no program"));
  EXPECT_THAT(resolve({.on = {{"h0", "sleep"}}, .program = {"sleep"}, .gdb = {}, .valgrind = {}}),
              HasSubstr("cannot be combined with"));
  EXPECT_THAT(resolve({.on = {}, .program = {"sleep"}, .gdb = {}, .valgrind = {}}, 1), HasSubstr("two hosts"));
  EXPECT_THAT(resolve({.on = {}, .program = {"no-such-program"}, .gdb = {}, .valgrind = {}}),
              HasSubstr("h0: no-such-program: no such program"));
  EXPECT_THAT(resolve({.on = {{"h7", "sleep"}}, .program = {}, .gdb = {}, .valgrind = {}}), HasSubstr("h0 to h1"));
  EXPECT_THAT(resolve({.on = {}, .program = {"sleep"}, .gdb = {"h1"}, .valgrind = {"h1"}}), HasSubstr("both name h1"));
}

class ProgramCheck : public testing::Test {
 protected:
  ProgramCheck() : folder_(fs::temp_directory_path() / ("rnicsim-program-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ProgramCheck() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name, const std::string& bytes, mode_t mode = 0755) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  fs::path compile(const std::string& name, const std::string& options, const std::string& source) {
    const fs::path path = folder_ / name;
    file(name + ".c", source);
    const std::string command = "cc " + options + " -o " + path.string() + " " + path.string() + ".c 2>/dev/null";
    return std::system(command.c_str()) == 0 ? path : fs::path();
  }

  fs::path folder_;
};

TEST_F(ProgramCheck, DynamicProgramAndScript) {
  EXPECT_EQ(program_problem(compile("dynamic", "", "int main() { return 0; }")), "");
  EXPECT_EQ(program_problem(file("script", "#! /bin/sh -e\nexit 0\n")), "");
}

TEST_F(ProgramCheck, StaticProgram) {
  for (const char* options : {"-static", "-static-pie"}) {
    const auto path = compile("static", options, "int main() { return 0; }");
    ASSERT_FALSE(path.empty());
    EXPECT_THAT(program_problem(path), HasSubstr("statically linked")) << options;
  }
}

TEST_F(ProgramCheck, Tracers) {
  for (const char* name : {"strace", "gdb", "lldb-14"})
    EXPECT_THAT(program_problem(file(name, "#!/bin/sh\n", 0755)), HasSubstr("--gdb")) << name;
  for (const char* name : {"gdbus", "rrdtool", "straces"})
    EXPECT_EQ(program_problem(file(name, "#!/bin/sh\n", 0755)), "") << name;
}

TEST_F(ProgramCheck, SetUserId) {
  EXPECT_THAT(program_problem(file("setuid", "#!/bin/sh\n", 04755)), HasSubstr("setuid"));
  EXPECT_THAT(program_problem(file("setgid", "#!/bin/sh\n", 02755)), HasSubstr("setgid"));
}

TEST_F(ProgramCheck, OtherArchitecture) {
  const auto path = compile("other", "", "int main() { return 0; }");
  std::fstream image(path, std::ios::in | std::ios::out | std::ios::binary);
  image.seekp(18);  // e_machine
  image.put('\x08').put('\0');
  image.close();
  EXPECT_THAT(program_problem(path), HasSubstr("another architecture"));
}

TEST_F(ProgramCheck, WhatIsNoProgram) {
  EXPECT_THAT(program_problem(folder_ / "none"), HasSubstr("no such program"));
  EXPECT_THAT(program_problem(folder_), HasSubstr("not a file"));
  EXPECT_THAT(program_problem(file("plain", "#!/bin/sh\n", 0644)), HasSubstr("not executable"));
  EXPECT_THAT(program_problem(file("empty", "")), HasSubstr("neither"));
  EXPECT_THAT(program_problem(file("text", "echo hello\n")), HasSubstr("neither"));
  EXPECT_THAT(program_problem(file("lost", "#!/no/such/interpreter\n")), HasSubstr("/no/such/interpreter"));
  EXPECT_THAT(program_problem(file("lonely", "#!\n")), HasSubstr("interpreter"));
}

// Errors that the system itself detects keep the system's errno. Programs that the system would run but that cannot be
// simulated get another error.
TEST_F(ProgramCheck, AnImageOfARunningProgram) {
  EXPECT_EQ(image_problem(compile("dynamic", "", "int main() { return 0; }"), "/"), "");
  for (const char* options : {"-static", "-static-pie"}) {
    const auto path = compile("static", options, "int main() { return 0; }");
    if (path.empty()) continue;
    EXPECT_THAT(image_problem(path, "/"), HasSubstr("statically linked")) << options;
    const auto script = file("script", "#!" + path.string() + "\n");
    EXPECT_THAT(image_problem(script, "/"),
                HasSubstr("its interpreter " + path.string() + ": the program is statically"));
    EXPECT_THAT(image_problem(file("relative", "#! static\n"), folder_), HasSubstr("statically linked"));
    EXPECT_THAT(image_problem(file("nested", "#!" + script.string() + " -x\n"), "/"), HasSubstr("statically linked"));
  }
  EXPECT_EQ(image_problem(folder_ / "none", "/"), "");
  EXPECT_EQ(image_problem(folder_, "/"), "");
  EXPECT_EQ(image_problem(file("plain", "#!/bin/sh\n", 0644), "/"), "");
  EXPECT_EQ(image_problem(file("text", "echo hello\n"), "/"), "");
  EXPECT_EQ(image_problem(file("lost", "#!/no/such/interpreter\n"), "/"), "");
  EXPECT_EQ(image_problem(file("circle", "#!" + (folder_ / "circle").string() + "\n"), "/"), "");
  // The user already is the owner: no change of identity.
  EXPECT_EQ(image_problem(file("setuid", "#!/bin/sh\n", 04755), "/"), "");
}

// A false header must not cause reads beyond the file, or an endless loop.
TEST_F(ProgramCheck, TruncatedAndLyingImages) {
  const auto path = compile("dynamic", "", "int main() { return 0; }");
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t length = 0; length < 700; ++length) program_problem(file("cut", whole.substr(0, length)));
  for (std::size_t at = 16; at < 64; ++at) {
    std::string lying = whole;
    lying[at] = '\xff';
    program_problem(file("lying", lying));
  }
}

}  // namespace
}  // namespace rnicsim::sim

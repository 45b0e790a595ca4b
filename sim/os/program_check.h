// SPDX-License-Identifier: Apache-2.0
// Checks before the start whether a program can run on a simulated host.
#pragma once

#include <filesystem>
#include <string>

namespace rnicsim::sim {

struct FoundProgram {
  std::filesystem::path path;
  std::string problem;  // one line; empty: the program can run
};

// `name` as typed. Without a slash it is searched on PATH.
FoundProgram find_program(const std::string& name);
// Reason why the file cannot run; empty: it can.
std::string program_problem(const std::filesystem::path& path);
// For a program that another program executes: the reason why it cannot be simulated although the system would run it;
// empty: none. Files that the system itself refuses are no problem here. `folder`: start of a relative path of a
// script's interpreter.
std::string image_problem(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace rnicsim::sim

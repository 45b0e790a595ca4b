// Can this program be run on a simulated host? Said before anything starts, in one line.
#pragma once

#include <filesystem>
#include <string>

namespace rnicsim::sim {

struct FoundProgram {
  std::filesystem::path path;
  std::string problem;  // empty: it can be run
};

// `name` as typed: looked for on PATH unless it has a slash.
FoundProgram find_program(const std::string& name);
// What keeps the file from being run; empty when nothing does.
std::string program_problem(const std::filesystem::path& path);

}  // namespace rnicsim::sim

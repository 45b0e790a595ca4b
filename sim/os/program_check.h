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
// For a program that another executes: what keeps it from being simulated though the system would run it. What the
// system itself refuses is no problem here. `folder` is where a relative path of a script's interpreter begins.
std::string image_problem(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace rnicsim::sim

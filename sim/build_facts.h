// What this program was built of: `rnicsim --version`.
#pragma once

#include <string>

namespace rnicsim::sim {

// Of git (cmake/version.cmake); the file that has them is written by the build.
extern const char kVersion[];
extern const char kCommit[];

// "rnicsim VERSION", then a line a fact.
std::string build_facts();

}  // namespace rnicsim::sim

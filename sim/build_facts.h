// SPDX-License-Identifier: Apache-2.0
// Version, commit, compiler and libraries of this program: `rnicsim --version`.
#pragma once

#include <string>

namespace rnicsim::sim {

// Version and commit as git knows them. The build writes the source that defines them (cmake/version.cmake).
extern const char kVersion[];
extern const char kCommit[];

// "rnicsim VERSION", then one line for each fact.
std::string build_facts();

}  // namespace rnicsim::sim

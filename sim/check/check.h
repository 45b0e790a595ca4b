// SPDX-License-Identifier: Apache-2.0
// `rnicsim check`: runs the cases of a folder, and compares each run with its expectation. Manual: docs/check.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/case.h"

namespace rnicsim::sim::check {

struct CheckOptions {
  std::filesystem::path folder;
  std::vector<std::string> cases;  // names; empty: all cases
  unsigned jobs = 1;
  std::optional<Level> level;          // for all cases; nullopt: as each case says
  std::string junit, json, html, out;  // files; `out`: a folder; empty: none
  std::string history;                 // folder of a history, which stores this check under `label`; empty: none
  std::string label;
  std::vector<std::string> path;  // folders that are searched for programs before PATH
  std::string bisect;             // GOOD..BAD; empty: checks the working tree
  std::string build;              // shell command that builds a commit; empty: no build
  bool update = false;
  bool yes = false;  // do not ask before --update writes
};

// Returns 0: all cases passed, 1: at least one did not, 2: no case could be run, 128 + signal: interrupted.
// ConfigError: nothing was run, or a file could not be written.
int run_check(const CheckOptions& options);

}  // namespace rnicsim::sim::check

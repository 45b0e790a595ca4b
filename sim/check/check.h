// `rnicsim check`: a folder of cases, each run and compared with what is expected of it. docs/check.md is its manual.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/case.h"

namespace rnicsim::sim::check {

struct CheckOptions {
  std::filesystem::path folder;
  std::vector<std::string> cases;  // by name; empty: all
  unsigned jobs = 1;
  std::optional<Level> level;          // of all cases; nullopt: as each says
  std::string junit, json, html, out;  // empty: none
  std::string history;                 // a folder, in which `label` names this check; empty: none
  std::string label;
  std::vector<std::string> path;  // folders to look for programs in, before PATH
  std::string bisect;  // GOOD..BAD; empty: the working tree is checked
  std::string build;   // of a commit, a command of the shell; empty: there is nothing to build
  bool update = false;
  bool yes = false;  // to what --update asks
};

// 0: all passed, 1: one did not, 2: none could be run, 128 + signal: interrupted. ConfigError: nothing was run, or not
// everything could be written.
int run_check(const CheckOptions& options);

}  // namespace rnicsim::sim::check

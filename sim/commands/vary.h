// SPDX-License-Identifier: Apache-2.0
// The option --vary and its companions: a sweep without a sweep file.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/sweep/plan.h"

namespace rnicsim::sim {

struct Vary {
  std::vector<std::string> axes;
  std::uint64_t seeds = 0;  // 0: not given
  std::string out;
  unsigned jobs = 0;
};

// Adds --vary, --seeds, --out and --jobs; returns --vary. `name`: origin of the default folder's name, for the help.
CLI::Option* add_vary(CLI::App& command, Vary& vary, const std::string& name);
// Puts the axes, and the seeds if given, into the plan. ConfigError.
void vary_plan(const Vary& vary, sweep::SweepPlan& plan);

}  // namespace rnicsim::sim

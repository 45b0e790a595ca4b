// --vary and what goes with it: a sweep without a file.
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

// --vary, --seeds, --out, --jobs. `name`: of what the default folder is called after. Returns the first.
CLI::Option* add_vary(CLI::App& command, Vary& vary, const std::string& name);
// The axes, and the seeds if they were given. ConfigError.
void vary_plan(const Vary& vary, sweep::SweepPlan& plan);

}  // namespace rnicsim::sim

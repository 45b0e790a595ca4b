// SPDX-License-Identifier: Apache-2.0
// `rnicsim sweep`: many runs of `bench`, with common results.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/plan.h"

namespace rnicsim::sim::sweep {

struct SweepOptions {
  std::string file;               // a sweep file; empty: continue the sweep in `out`
  std::optional<SweepPlan> plan;  // replaces the file: the plan of `bench --vary`
  std::string out;                // folder; empty: the plan's name
  unsigned jobs = 0;              // parallel runs; 0: number of processors, or one for a rank of several
  std::string share;              // "K/N"; empty: all runs, or the rank's share
  bool slurm = false;
  std::size_t tasks = 0;            // of the job array; 0: number of runs, at most 1,000
  std::vector<std::string> sbatch;  // options for sbatch
  std::string json;
  std::vector<std::string> invocation;
};

// Returns 0: all runs succeeded; 1: some failed. ConfigError.
int run_sweep(const SweepOptions& options);

}  // namespace rnicsim::sim::sweep

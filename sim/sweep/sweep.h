// `rnicsim sweep`: many runs of `bench`, and what came of all of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/plan.h"

namespace rnicsim::sim::sweep {

struct SweepOptions {
  std::string file;               // a sweep file; empty: what `out` has goes on
  std::optional<SweepPlan> plan;  // in the file's place: that of `bench --vary`
  std::string out;                // the folder; empty: the plan's name
  unsigned jobs = 0;              // runs at a time; 0: as many as processors, one for a rank of several
  std::string share;              // "K/N"; empty: all, or a rank's
  bool slurm = false;
  std::size_t tasks = 0;            // of the job array; 0: as many as runs, 1,000 at most
  std::vector<std::string> sbatch;  // options of sbatch
  std::string json;
  std::vector<std::string> invocation;
};

// 0: every run was done; 1: some failed. ConfigError.
int run_sweep(const SweepOptions& options);

}  // namespace rnicsim::sim::sweep

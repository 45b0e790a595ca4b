// SPDX-License-Identifier: Apache-2.0
// Runs a sweep as a job array of Slurm; each task executes a share.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

// Submits the job array and waits for its end. `options` are passed to sbatch. All nodes must see the folder.
// ConfigError: sbatch refused the job, or its outcome is unknown.
void run_by_slurm(const Store& store, std::size_t tasks, const std::vector<std::string>& options);

}  // namespace rnicsim::sim::sweep

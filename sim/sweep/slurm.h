// A sweep by Slurm: a job array, each task a share.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

// Submits it and waits for its end; `options` go to sbatch. The folder is one that all nodes see.
// ConfigError: it was not taken, or it is not known what became of it.
void run_by_slurm(const Store& store, std::size_t tasks, const std::vector<std::string>& options);

}  // namespace rnicsim::sim::sweep

// `rnicsim run`, `serve` and `env`: a system, and real programs on its hosts.
#pragma once

#include <string>

#include "sim/run_options.h"
#include "sim/system.h"

namespace rnicsim::sim {

// Each returns the exit status. run: the worst of the programs'.
int run_programs(System& system, const RunOptions& options);
int serve_programs(System& system, const RunOptions& options);
int print_environment(const std::string& host);

}  // namespace rnicsim::sim

// `rnicsim run`, `serve` and `env`: a system, and real programs on its hosts.
#pragma once

#include <string>

#include "sim/json_output.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

// Each returns the exit status. run: the worst of the programs'. A waterfall's summary is put into the results.
int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall, JsonOutput& json);
int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall);
int print_environment(const std::string& host);

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Common part of `run`, `serve` and `shell`: a system configured by the command line, with observers and programs.
#pragma once

#include <algorithm>
#include <string>

#include "sim/commands/options.h"
#include "sim/config/config.h"
#include "sim/observers.h"
#include "sim/run_options.h"
#include "sim/system.h"

namespace rnicsim::sim {

struct Simulation {
  RunOptions options;
  RunArguments arguments;
  ObserverOptions observers;
  std::string json;
};

// Adds the options for configuration, observers, engine, seed, clock and limits.
void add_simulation(CLI::App& command, Simulation& simulation);
// Loads the configuration, with the engine's options, and prints its warnings. ConfigError.
Config configuration_of(RunOptions& options);
// Checks combinations of options, and loads the configuration. ConfigError.
Config prepare(Simulation& simulation);

template <class Programs>
int simulate(const Simulation& simulation, const Config& config, Programs&& programs) {
  const RunOptions& options = simulation.options;
  System system("system", config, options.seed, options.engine.fst, nullptr, {}, options.outside);
  Observers observers(system, simulation.observers, trace_header(system, options));
  const int status = programs(system, options, observers.waterfall());
  return observers.finish() ? status : std::max(status, 1);
}

}  // namespace rnicsim::sim

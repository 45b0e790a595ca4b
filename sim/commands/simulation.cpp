// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/simulation.h"

#include <map>

#include "sim/config/config_error.h"
#include "sim/config/loader.h"

namespace rnicsim::sim {

void add_simulation(CLI::App& command, Simulation& simulation) {
  add_configuration(command, simulation.options);
  add_observers(command, simulation.observers);
  add_engine(command, simulation.options.engine);
  add_seed(command, simulation.options.seed, "seed of all random choices")->capture_default_str();
  const std::map<std::string, TimeMode> modes{
      {"sim", TimeMode::simulated}, {"each-look", TimeMode::each_look}, {"real", TimeMode::real}};
  add_choice(
      command, "--time", simulation.options.time, modes,
      "clock of the programs: sim (default), simulated time; each-look, the same, with a scheduling turn for each "
      "poll of a polling loop; or real, real time");
  add_limits(command, simulation.options.limits);
}

Config configuration_of(RunOptions& options) {
  options.engine.add_to(options.sets);
  auto config = load_config(options.nic, options.topology, options.sets, options.faults, options.host);
  for (const auto& warning : config.warnings) fmt::print(stderr, "rnicsim: warning: {}\n", warning);
  return config;
}

Config prepare(Simulation& simulation) {
  RunOptions& options = simulation.options;
  if (simulation.observers.follow.any() && options.time == TimeMode::real)
    throw ConfigError("--waterfall and --perfetto measure simulated time, and cannot be combined with --time=real");
  if (simulation.observers.recorded.calls && options.time == TimeMode::real)
    throw ConfigError("--record-calls needs simulated time, and cannot be combined with --time=real");
  return configuration_of(options);
}

}  // namespace rnicsim::sim

// rnicsim bench: agents inside the simulator.
#include "sim/bench/bench.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_bench(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("bench", "let agents inside the simulator drive the NICs, as a workload file says");
  const auto options = std::make_shared<bench::BenchOptions>();
  command.add_option("WORKLOAD", options->workload, "a TOML file (docs/workloads.md), or the name of one of ours")
      ->required();
  add_sets(command, options->sets,
           "a parameter, such as nic.pcie.read_latency=600ns, or a key of the workload, such as flow[0].window=8; may "
           "be repeated");
  command.add_option("--nic", options->nic, "NIC profile by name, or a TOML file, in place of the workload's");
  command.add_option("--topology", options->topology, "topology by name, or a TOML file, in place of the workload's");
  add_faults(command, options->faults);
  command.add_option("--seed", options->seed, "of everything random, in place of the workload's");
  add_json(command, options->json);
  add_observers(command, options->observers);
  add_engine(command, options->engine);
  add_limits(command, options->limits);
  command.footer(
      "The exit status is 0; 1 when an operation failed, nothing moved or a counter disagrees with the trace, 2 for "
      "what cannot be run, 3 when the RTL's referee objects, 124 at a limit, 128 + signal when the run was ended by "
      "one.");
  return {&command, [options] { return bench::run_bench(*options); }};
}

}  // namespace rnicsim::sim

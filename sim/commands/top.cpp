// SPDX-License-Identifier: Apache-2.0
// rnicsim top: shows a run while it goes on.
#include "sim/top/top.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_top(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("top", "show the state of a running simulation on the terminal: docs/daily.md");
  const auto options = std::make_shared<top::TopOptions>();
  command.add_option("PID", options->pid, "process ID of the simulation; default: the only simulation");
  command.add_flag("--once", options->once, "print the state once, as text");
  command.add_flag("--json", options->json, "print the state once, as JSON");
  const auto set_delay = [options](const std::string& text) { options->delay = time_of("--delay", text); };
  command.add_option_function<std::string>("--delay", set_delay, "real time between two updates (default: 1s)")
      ->type_name("TIME");
  command.footer(
      "The exit status is 0; 1 if the simulation does not answer; 2 if there is no simulation, or several and no PID.");
  return {&command, [options] {
            refuse_simulated_host("top");
            return run_top(*options);
          }};
}

}  // namespace rnicsim::sim

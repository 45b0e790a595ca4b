// SPDX-License-Identifier: Apache-2.0
// rnicsim shell: a shell whose programs run on a simulated host.
#include <memory>

#include "sim/attached/host_shell.h"
#include "sim/attached/run.h"
#include "sim/attached/serving.h"
#include "sim/commands/command.h"
#include "sim/commands/simulation.h"
#include "sim/config/config_error.h"
#include "sim/config/host_names.h"

namespace rnicsim::sim {
namespace {

struct Shell {
  ShellRequest request{.host = "h0", .command = {}};
  Simulation simulation;
};

// A running simulation already has its configuration: options other than HOST and -c are refused.
void refuse_configuration(const CLI::App& command, const std::string& socket_name) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() != 0 && option->get_name() != "HOST" && option->get_name() != "-c")
      throw ConfigError(
          fmt::format("{}: this shell would join the simulation that runs at {}: end that simulation first, or "
                      "set another RNICSIM_SOCKET for this shell",
                      option->get_name(), socket_name));
}

int open_or_join(Shell& shell, const CLI::App& command) {
  refuse_simulated_host("shell");
  if (const auto serving = find_serving()) {
    refuse_configuration(command, serving->socket_name);
    return join_shell(shell.request);
  }
  const Config config = prepare(shell.simulation);
  const auto host = expand_hosts(shell.request.host, config.topology);
  if (host.size() != 1)
    throw ConfigError(fmt::format("'{}' names several hosts: a shell runs on one host", shell.request.host));
  return open_shell(shell.request, [&](const std::string& socket_name, const std::function<void()>& ready) {
    return simulate(shell.simulation, config, [&](System& system, const RunOptions& options, const Waterfall* shown) {
      return serve_shell(system, options, shown, socket_name, ready);
    });
  });
}

}  // namespace

Command add_shell(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("shell", "open a shell whose programs run on a simulated host: docs/daily.md");
  const auto shell = std::make_shared<Shell>();
  command.add_option("HOST", shell->request.host, "host of the shell")->capture_default_str();
  command.add_option("-c", shell->request.command, "execute this command in the shell, then end")->type_name("COMMAND");
  add_simulation(command, shell->simulation);
  command.footer(
      "The shell joins the simulation of a running `serve` or of another shell. Without one, the shell starts a "
      "simulation, which ends with the shell. The exit status is the shell's; but 124 if the simulation reached a "
      "limit, 1 if an audit failed, 3 if --engine lockstep found a difference.");
  return {&command, [shell, &command] { return open_or_join(*shell, command); }};
}

}  // namespace rnicsim::sim

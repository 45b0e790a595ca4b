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
          fmt::format("{}: a simulation runs at {}, which this shell would join; end that one first, or "
                      "give this one another RNICSIM_SOCKET",
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
  if (host.size() != 1) throw ConfigError(fmt::format("'{}': a shell is on one host", shell.request.host));
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
  command.add_option("HOST", shell->request.host, "the host")->capture_default_str();
  command.add_option("-c", shell->request.command, "let the shell execute this, and end")->type_name("COMMAND");
  add_simulation(command, shell->simulation);
  command.footer(
      "Where `serve` or another shell runs already it joins that simulation; else it starts one, which ends with it. "
      "The exit status is the shell's; but 124 when the simulation came to a limit, 1 or 3 when an audit or the RTL's "
      "referee objects.");
  return {&command, [shell, &command] { return open_or_join(*shell, command); }};
}

}  // namespace rnicsim::sim

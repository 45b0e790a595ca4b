// SPDX-License-Identifier: Apache-2.0
// rnicsim run, serve, env: real programs on simulated hosts.
#include "sim/attached/run.h"

#include <memory>

#include "sim/attached/serving.h"
#include "sim/commands/command.h"
#include "sim/commands/simulation.h"
#include "sim/config/config_error.h"
#include "sim/guest/wire/live_wire.h"
#include "sim/guest/wire/wire_choice.h"
#include "sim/results/json_output.h"

namespace rnicsim::sim {
namespace {

void add_grace(CLI::App& command, std::optional<Duration>& grace) {
  const auto set = [&grace](const std::string& text) {
    grace = text == "never" ? std::nullopt : std::optional(time_of("--grace", text));
  };
  command
      .add_option_function<std::string>(
          "--grace", set,
          "when a program failed and the others do nothing but poll, spin and wait for so long in simulated time, the "
          "run ends and says who waited for what (default: 1s); `never`: it goes on")
      ->type_name("TIME");
}

// A peer outside of the simulation runs in real time.
void keep_real_time(const CLI::App& command, RunOptions& options) {
  if (command.get_option("--time")->count() != 0 && options.time != TimeMode::real)
    throw ConfigError("--wire is paced by the wall clock: it goes with --time=real only, which is its default");
  options.time = TimeMode::real;
}

int run(Simulation& simulation, const CLI::App& command, const Program& program) {
  simulation.arguments.program = program;
  RunOptions& options = simulation.options;
  if (!simulation.arguments.wires.empty()) keep_real_time(command, options);
  const Config config = prepare(simulation);
  const auto wires = parse_wires(simulation.arguments.wires, config.topology);
  for (const auto& wire : wires) options.outside.insert(wire.host);
  resolve_commands(simulation.arguments, config.topology, options);
  JsonOutput json(simulation.json);
  return simulate(simulation, config, [&](System& system, const RunOptions& options, const Waterfall* waterfall) {
    std::unique_ptr<LiveWire> wire;
    if (!wires.empty()) wire = std::make_unique<LiveWire>(system, wires);
    return run_programs(system, options, waterfall, json, wire.get());
  });
}

}  // namespace

Command add_run(CLI::App& app, const Program& program) {
  CLI::App& command = *app.add_subcommand("run", "run programs on the simulated hosts");
  command.footer(
      "rnicsim run [OPTIONS] -- PROG ARGS runs PROG ARGS on the first host, and PROG ARGS <its address> on the "
      "second.\nThe exit status is the worst of the programs' (128 + signal for one that was killed); 1 when they "
      "stood still, 2 for what cannot be run, 3 when the RTL's referee objects, 124 at a limit, 128 + signal when the "
      "run was ended by one.");
  const auto simulation = std::make_shared<Simulation>();
  add_grace(command, simulation->options.grace);
  add_simulation(command, *simulation);
  add_json(command, simulation->json);
  RunArguments& arguments = simulation->arguments;
  command.add_option("--on", arguments.on, "run COMMAND on a host, or on several: 'h[0-3]'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("HOST COMMAND");
  command.add_option("--gdb", arguments.gdb, "run that host's programs under gdb")
      ->allow_extra_args(false)
      ->type_name("HOST");
  command.add_option("--valgrind", arguments.valgrind, "run that host's programs under valgrind")
      ->allow_extra_args(false)
      ->type_name("HOST");
  command
      .add_option("--wire", arguments.wires,
                  "that host is no simulated one but the world: its cable ends at a socket (unix:PATH; with ,connect "
                  "rnicsim connects, else it listens) with the framing of QEMU's -netdev stream, or at a TAP interface "
                  "(tap:NAME); --time=real; may be repeated; docs/live-wire.md")
      ->allow_extra_args(false)
      ->type_name("HOST=LINE");
  return {&command, [simulation, &command, &program] { return run(*simulation, command, program); }};
}

Command add_serve(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("serve", "start the simulated hosts and wait for programs");
  const auto simulation = std::make_shared<Simulation>();
  add_simulation(command, *simulation);
  return {&command, [simulation] { return simulate(*simulation, prepare(*simulation), serve_programs); }};
}

Command add_env(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("env", "print the environment with which a program attaches to `serve`");
  const auto host = std::make_shared<std::string>();
  command.add_option("host", *host, "the host that the program is to run on")->required();
  return {&command, [host] { return print_environment(*host); }};
}

}  // namespace rnicsim::sim

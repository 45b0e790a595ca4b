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
          "after a failure of a program, end the run when the other programs have only polled and waited for this "
          "simulated time, and print the reason of each wait (default: 1s); `never`: the run continues")
      ->type_name("TIME");
}

// A peer outside of the simulation runs in real time.
void keep_real_time(const CLI::App& command, RunOptions& options) {
  if (command.get_option("--time")->count() != 0 && options.time != TimeMode::real)
    throw ConfigError("--wire needs real time: remove --time, or use --time=real");
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
      "rnicsim run [OPTIONS] -- PROG ARGS runs `PROG ARGS` on the first host, and `PROG ARGS ADDRESS` with the first "
      "host's address on the second.\nThe exit status is the worst status of the programs (128 + signal for a killed "
      "program); 1 if no program could continue; 2 if the run cannot start; 3 if --engine lockstep finds a difference; "
      "124 at a limit; 128 + signal if a signal ended the run.");
  const auto simulation = std::make_shared<Simulation>();
  add_grace(command, simulation->options.grace);
  add_simulation(command, *simulation);
  add_json(command, simulation->json);
  RunArguments& arguments = simulation->arguments;
  command
      .add_option("--on", arguments.on, "run COMMAND on a host or on several hosts, such as 'h[0-3]'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("HOST COMMAND");
  command.add_option("--gdb", arguments.gdb, "run the programs of this host under gdb")
      ->allow_extra_args(false)
      ->type_name("HOST");
  command.add_option("--valgrind", arguments.valgrind, "run the programs of this host under valgrind")
      ->allow_extra_args(false)
      ->type_name("HOST");
  command
      .add_option("--wire", arguments.wires,
                  "connect the cable of this host to the real world: to a socket (unix:PATH, where rnicsim listens; "
                  "unix:PATH,connect, where rnicsim connects) with the frames of QEMU's -netdev stream, or to a TAP "
                  "interface (tap:NAME). Runs in real time. May be repeated; docs/live-wire.md")
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
  command.add_option("host", *host, "host of the program")->required();
  return {&command, [host] { return print_environment(*host); }};
}

}  // namespace rnicsim::sim

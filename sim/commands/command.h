// SPDX-License-Identifier: Apache-2.0
// Commands of the program; each is a file of this folder. add_COMMAND() adds the command's options to the command line;
// Command::execute runs the command if it was chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rnicsim::sim {

struct Command {
  CLI::App* line;
  std::function<int()> execute;  // returns the exit status; main.cpp handles exceptions
};

// A program and its arguments. All words after `--` on the command line belong to it, even if they look like options of
// rnicsim.
using Program = std::vector<std::string>;

// Adds the commands in the order in which --help shows them: all commands (all.cpp), or those of the smaller program
// that the launcher builds for `run` (run_only.cpp). `words`, `program`: as below.
std::vector<Command> add_commands(CLI::App& app, const Program& words, const Program& program);

Command add_run(CLI::App& app, const Program& program);
Command add_serve(CLI::App& app);
Command add_shell(CLI::App& app);
Command add_top(CLI::App& app);
Command add_env(CLI::App& app);
Command add_device(CLI::App& app);
Command add_vm(CLI::App& app);
// `words`: the whole command line, which results record as their origin.
Command add_bench(CLI::App& app, const Program& words);
Command add_sweep(CLI::App& app, const Program& words);
Command add_calibrate(CLI::App& app);
Command add_check(CLI::App& app);
Command add_describe(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_replay(CLI::App& app, const Program& words);
Command add_trace(CLI::App& app);
Command add_report(CLI::App& app, const Program& words);
// Hidden commands, which --help does not list.
Command add_complete(CLI::App& app, const Program& words);
Command add_manual(CLI::App& app);

}  // namespace rnicsim::sim

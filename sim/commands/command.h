// The commands of the program, each a file of this folder: what it takes is put on the command line at once, what it
// does is done when it was chosen.
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
  std::function<int()> execute;  // the exit status; exceptions as main.cpp has them
};

// A program and its arguments. What follows `--` on the command line is one, however much it looks like an option of
// ours.
using Program = std::vector<std::string>;

// The commands of this program, in the order in which --help shows them: all (all.cpp), or those that the program for
// `run` alone has (run_only.cpp). `words`, `program`: as below.
std::vector<Command> add_commands(CLI::App& app, const Program& words, const Program& program);

Command add_run(CLI::App& app, const Program& program);
Command add_serve(CLI::App& app);
Command add_shell(CLI::App& app);
Command add_top(CLI::App& app);
Command add_env(CLI::App& app);
Command add_device(CLI::App& app);
Command add_vm(CLI::App& app);
// `words`: the whole command line, for the results to say what made them.
Command add_bench(CLI::App& app, const Program& words);
Command add_sweep(CLI::App& app, const Program& words);
Command add_calibrate(CLI::App& app);
Command add_check(CLI::App& app);
Command add_describe(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_replay(CLI::App& app, const Program& words);
Command add_trace(CLI::App& app);
Command add_report(CLI::App& app, const Program& words);
// Not among those that --help lists.
Command add_complete(CLI::App& app, const Program& words);
Command add_manual(CLI::App& app);

}  // namespace rnicsim::sim

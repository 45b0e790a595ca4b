// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/command.h"

namespace rnicsim::sim {

// The launcher, ./rnicsim, has the same list, except for `complete`, which --help does not show.
std::vector<Command> add_commands(CLI::App& app, const Program& words, const Program& program) {
  return {add_run(app, program), add_serve(app),    add_shell(app), add_env(app),
          add_top(app),          add_describe(app), add_diff(app),  add_complete(app, words)};
}

}  // namespace rnicsim::sim

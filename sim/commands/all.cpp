// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/command.h"

namespace rnicsim::sim {

std::vector<Command> add_commands(CLI::App& app, const Program& words, const Program& program) {
  return {
      add_run(app, program),  add_serve(app),           add_shell(app),
      add_env(app),           add_device(app),          add_vm(app),
      add_top(app),           add_bench(app, words),    add_sweep(app, words),
      add_report(app, words), add_check(app),           add_calibrate(app),
      add_describe(app),      add_trace(app),           add_diff(app),
      add_replay(app, words), add_complete(app, words), add_manual(app),
  };
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim diff: compares two recorded runs.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "sim/commands/command.h"
#include "sim/trace_file/trace_diff.h"

namespace rnicsim::sim {

Command add_diff(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("diff", "print the first difference of two recorded runs");
  const auto traces = std::make_shared<std::array<std::string, 2>>();
  command.add_option("A", (*traces)[0], "a file that `run --record` wrote")->required();
  command.add_option("B", (*traces)[1], "another such file")->required();
  command.footer("The exit status is 0 if all events are equal, 1 if events differ, 2 if a file cannot be read.");
  return {&command, [traces] { return diff_traces((*traces)[0], (*traces)[1]); }};
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/vary.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "sim/config/config_error.h"

namespace rnicsim::sim {

CLI::Option* add_vary(CLI::App& command, Vary& vary, const std::string& name) {
  auto* axes = command
                   .add_option("--vary", vary.axes,
                               "sweep over values of a key: 16,64,256 or 256..4096*2 or 0..100+25; may be repeated; "
                               "docs/sweep.md")
                   ->allow_extra_args(false)
                   ->type_name("KEY=VALUES");
  command.add_option("--seeds", vary.seeds, "runs of each point, with the seeds 1, 2, ...")
      ->check(CLI::Range(1, 10'000))
      ->needs(axes);
  command.add_option("--out", vary.out, fmt::format("folder for the results of the sweep; default: the {}", name))
      ->needs(axes)
      ->type_name("FOLDER");
  command.add_option("--jobs,-j", vary.jobs, "runs in parallel; default: one for each processor")
      ->check(CLI::Range(1, 4096))
      ->needs(axes);
  return axes;
}

void vary_plan(const Vary& vary, sweep::SweepPlan& plan) {
  if (vary.seeds != 0) {
    plan.seeds.resize(vary.seeds);
    std::iota(plan.seeds.begin(), plan.seeds.end(), 1);
  }
  for (const auto& axis : vary.axes) {
    const auto equals = axis.find('=');
    if (equals == axis.npos) throw ConfigError(fmt::format("--vary: '{}' is not KEY=VALUES", shown(axis)));
    plan.axes.push_back(sweep::parse_axis(axis.substr(0, equals), std::string_view(axis).substr(equals + 1)));
  }
}

}  // namespace rnicsim::sim

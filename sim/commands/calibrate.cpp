// SPDX-License-Identifier: Apache-2.0
// rnicsim calibrate: compares the shipped NICs with published measurements.
#include "sim/calibrate/calibrate.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_calibrate(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("calibrate", "compare the shipped NICs with published measurements: docs/timing.md");
  const auto options = std::make_shared<calibrate::CalibrateOptions>();
  auto* rows = command.add_option("ROW", options->rows, "experiment, such as CAL-1; default: all experiments");
  command
      .add_flag("--sensitivity", options->sensitivity,
                "print the change of the experiments' numbers for a change of each estimated parameter by 10%")
      ->needs(rows);
  auto* fit = command
                  .add_option("--fit", options->fit,
                              "fit the estimated parameters of this NIC's profile, within their bounds, to its "
                              "experiments or to the named experiments; each experiment is held out once")
                  ->type_name("PROFILE")
                  ->excludes("--sensitivity");
  command.add_option("--rounds", options->rounds, "simulated steps of --fit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->needs(fit);
  add_json(command, options->json);
  command
      .add_option(
          "--out", options->out,
          "write the results of each point, a CSV file for each curve, and a page of plots to this folder; with "
          "--fit: the fitted profile and all numbers")
      ->type_name("FOLDER");
  options->jobs = std::max(1u, std::thread::hardware_concurrency());
  command.add_option("--jobs", options->jobs, "runs in parallel; the results do not depend on this number")
      ->check(CLI::Range(1, 256));
  command.footer(
      "The exit status is 0 if each number is within its tolerance or explained in docs/timing.md, else 1. With --fit "
      "or "
      "--sensitivity the exit status is 0.");
  return {&command, [options] { return calibrate::run_calibrate(*options); }};
}

}  // namespace rnicsim::sim

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
  auto* rows = command.add_option("ROW", options->rows, "experiments, such as CAL-1; default: all");
  command
      .add_flag("--sensitivity", options->sensitivity,
                "how far the numbers of these experiments move when each estimate of their profiles moves by 10%")
      ->needs(rows);
  auto* fit = command
                  .add_option("--fit", options->fit,
                              "search the estimates of this NIC's profile, between their bounds, for what fits all of "
                              "its experiments (or the named ones), and hold out each once")
                  ->type_name("PROFILE")
                  ->excludes("--sensitivity");
  command.add_option("--rounds", options->rounds, "steps of --fit that are simulated")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->needs(fit);
  add_json(command, options->json);
  command
      .add_option("--out", options->out,
                  "keep the results of every point, a CSV a curve, and a page of plots in this folder; of --fit a "
                  "profile of what it found, and all numbers")
      ->type_name("FOLDER");
  options->jobs = std::max(1u, std::thread::hardware_concurrency());
  command.add_option("--jobs", options->jobs, "runs at a time; they change no result")->check(CLI::Range(1, 256));
  command.footer(
      "The exit status is 0 when every number is within its tolerance, or argued in docs/timing.md, else 1; with --fit "
      "and --sensitivity it is 0.");
  return {&command, [options] { return calibrate::run_calibrate(*options); }};
}

}  // namespace rnicsim::sim

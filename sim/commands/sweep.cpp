// SPDX-License-Identifier: Apache-2.0
// rnicsim sweep: runs a workload at many points.
#include "sim/sweep/sweep.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_sweep(CLI::App& app, const Program& words) {
  CLI::App& command = *app.add_subcommand("sweep", "run a workload at many points, as a sweep file says");
  const auto options = std::make_shared<sweep::SweepOptions>();
  command
      .add_option("SWEEP", options->file,
                  "a TOML file (docs/sweep.md), or the name of one of ours; none: what is in the folder goes on")
      ->type_name("SWEEP");
  command
      .add_option("--out", options->out,
                  "the folder for the results; default: the sweep's name. What it has of the same sweep is kept")
      ->type_name("FOLDER");
  add_json(command, options->json);
  command.add_option("--jobs,-j", options->jobs, "runs at a time; they change no result; default: one a processor")
      ->check(CLI::Range(1, 4096));
  auto* slurm = command.add_flag("--slurm", options->slurm, "by a job array of Slurm, in place of here");
  command.add_option("--tasks", options->tasks, "of the job array; default: one a run, 1000 at most")
      ->check(CLI::Range(1, 100'000))
      ->needs(slurm);
  command.add_option("--sbatch", options->sbatch, "an option for sbatch, such as --partition=short; may be repeated")
      ->allow_extra_args(false)
      ->needs(slurm)
      ->type_name("OPTION");
  command
      .add_option("--share", options->share,
                  "of N processes that do it together, the Kth (from 0); under mpirun and "
                  "srun each rank does its own")
      ->excludes(slurm)
      ->type_name("K/N");
  command.footer(
      "Killed and started again, a sweep goes on with the runs that are not done. The exit status is 0 when all runs "
      "were done, 1 when some failed, 2 for what cannot be run.");
  return {&command, [options, &words] {
            options->invocation = words;
            return sweep::run_sweep(*options);
          }};
}

}  // namespace rnicsim::sim

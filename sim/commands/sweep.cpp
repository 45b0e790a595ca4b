// SPDX-License-Identifier: Apache-2.0
// rnicsim sweep: runs a workload at many points.
#include "sim/sweep/sweep.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_sweep(CLI::App& app, const Program& words) {
  CLI::App& command = *app.add_subcommand("sweep", "run a workload at many points: docs/sweep.md");
  const auto options = std::make_shared<sweep::SweepOptions>();
  command
      .add_option("SWEEP", options->file,
                  "a TOML file, or the name of an installed sweep; without SWEEP: continue the sweep in the folder")
      ->type_name("SWEEP");
  command
      .add_option(
          "--out", options->out,
          "folder for the results; default: the sweep's name. Results of the same sweep in this folder are kept")
      ->type_name("FOLDER");
  add_json(command, options->json);
  command
      .add_option("--jobs,-j", options->jobs,
                  "runs in parallel; the results do not depend on this number; default: one for each processor")
      ->check(CLI::Range(1, 4096));
  auto* slurm = command.add_flag("--slurm", options->slurm, "run as a job array of Slurm, not on this machine");
  command.add_option("--tasks", options->tasks, "tasks of the job array; default: one for each run, at most 1000")
      ->check(CLI::Range(1, 100'000))
      ->needs(slurm);
  command.add_option("--sbatch", options->sbatch, "option for sbatch, such as --partition=short; may be repeated")
      ->allow_extra_args(false)
      ->needs(slurm)
      ->type_name("OPTION");
  command
      .add_option("--share", options->share,
                  "run the Kth of N shares of the sweep (K from 0); under mpirun and srun each rank runs its own share")
      ->excludes(slurm)
      ->type_name("K/N");
  command.footer(
      "A sweep that was killed and started again continues with the unfinished runs. The exit status is 0 if all runs "
      "succeeded, 1 if a run failed, 2 if the sweep cannot start.");
  return {&command, [options, &words] {
            options->invocation = words;
            return sweep::run_sweep(*options);
          }};
}

}  // namespace rnicsim::sim

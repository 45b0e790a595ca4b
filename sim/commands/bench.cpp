// SPDX-License-Identifier: Apache-2.0
// rnicsim bench: agents inside the simulator.
#include "sim/bench/bench.h"

#include <filesystem>
#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"
#include "sim/commands/vary.h"
#include "sim/config/config_error.h"
#include "sim/processes/peers.h"
#include "sim/sweep/sweep.h"

namespace rnicsim::sim {

namespace {

sweep::SweepPlan plan_of(const bench::BenchOptions& options, const Vary& vary) {
  const auto& observers = options.observers;
  if (!observers.pcap.empty() || !observers.record.empty() || observers.audit || !observers.follow.perfetto.empty() ||
      !options.engine.fst.empty() || options.seed || options.limits.simulated || options.limits.wall ||
      !observers.log.empty() || observers.check)
    throw ConfigError(
        "--vary cannot be combined with --pcap, --record, --audit, --check, --log, --perfetto, --fst, --seed or "
        "limits");
  sweep::SweepPlan plan;
  plan.name = std::filesystem::path(options.workload).stem().string();
  plan.workload = options.workload;
  plan.nic = options.nic;
  plan.host = options.host;
  plan.topology = options.topology;
  plan.sets = options.sets;
  plan.faults = options.faults;
  plan.engine = options.engine.kind;
  plan.waterfall = observers.follow.waterfall;
  vary_plan(vary, plan);
  return plan;
}

int bench_or_sweep(const bench::BenchOptions& options, const Vary& vary, const Program& words) {
  if (options.processes > 1 && !vary.axes.empty()) throw ConfigError("--vary cannot be combined with --processes");
  if (options.processes > 1 && !started_by_mpi()) {
    bench::prepare_shared(options);  // reports errors once, before the processes start
    run_under_mpi(options.processes, words);
  }
  if (vary.axes.empty()) return bench::run_bench(options);
  sweep::SweepOptions all;
  all.plan = plan_of(options, vary);
  all.out = vary.out;
  all.jobs = vary.jobs;
  all.json = options.json;
  all.invocation = words;
  return sweep::run_sweep(all);
}

}  // namespace

Command add_bench(CLI::App& app, const Program& words) {
  CLI::App& command = *app.add_subcommand("bench", "drive the NICs by agents inside the simulator: docs/workloads.md");
  const auto options = std::make_shared<bench::BenchOptions>();
  command.add_option("WORKLOAD", options->workload, "a TOML file, or the name of an installed workload")
      ->required()
      ->type_name("WORKLOAD");
  add_sets(command, options->sets,
           "set a parameter, such as nic.pcie.read_latency=600ns, or a key of the workload, such as flow[0].window=8; "
           "may be repeated");
  command.add_option("--nic", options->nic, "NIC profile by name, or a TOML file, instead of the workload's profile")
      ->type_name("NIC");
  add_host_profile(command, options->host);
  command
      .add_option("--topology", options->topology,
                  "topology by name (star:8, fat-tree:4), or a TOML file, instead of the workload's topology")
      ->type_name("TOPOLOGY");
  add_faults(command, options->faults);
  add_seed(command, options->seed, "seed of all random choices, instead of the workload's seed");
  add_json(command, options->json);
  command.add_flag("--all-counters", options->all_counters,
                   "print a column for each host and switch; without this flag, many hosts are summarized");
  add_observers(command, options->observers);
  add_engine(command, options->engine);
  add_limits(command, options->limits);
  command
      .add_option("--processes", options->processes,
                  "simulate the hosts in this number of processes, started by mpirun; docs/processes.md")
      ->check(CLI::Range(1, 1024));
  command.footer(
      "The exit status is 0; 1 if an operation failed, no data moved, a counter disagrees with the trace, or --check "
      "has "
      "a finding; 2 if the run cannot start; 3 if --engine lockstep finds a difference; 124 at a limit; 128 + signal "
      "if "
      "a signal ended the run.");
  const auto vary = std::make_shared<Vary>();
  add_vary(command, *vary, "workload's name");
  return {&command, [options, vary, &words] { return bench_or_sweep(*options, *vary, words); }};
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim replay: repeats a recorded run without its programs, or takes the place of a real NIC in a capture.
#include "sim/replay/replay_wire.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "sim/commands/command.h"
#include "sim/commands/options.h"
#include "sim/commands/vary.h"
#include "sim/config/config_error.h"
#include "sim/rerun/rerun.h"
#include "sim/sweep/sweep.h"

namespace rnicsim::sim {

namespace {

// Each point of the sweep is a replay with --as-possible.
sweep::SweepOptions sweep_of(const rerun::RerunOptions& options, const Vary& vary, const Program& words) {
  const auto& observers = options.observers;
  if (!observers.pcap.empty() || !observers.record.empty() || observers.audit || !observers.log.empty() ||
      !options.engine.fst.empty())
    throw ConfigError("--vary cannot be combined with --pcap, --record, --audit, --log or --fst");
  sweep::SweepPlan plan;
  plan.name = std::filesystem::path(options.trace).stem().string();
  plan.recording = options.trace;
  if (!options.nic.empty()) plan.nic = options.nic;
  if (!options.host.empty()) plan.host = options.host;
  plan.sets = options.sets;
  plan.faults = options.faults;
  plan.engine = options.engine.kind;
  plan.seeds = {rerun::recorded_seed(options.trace)};
  vary_plan(vary, plan);
  sweep::SweepOptions all;
  all.plan = std::move(plan);
  all.out = vary.out;
  all.jobs = vary.jobs;
  all.json = options.json;
  all.invocation = words;
  return all;
}

int replay_recording(rerun::RerunOptions& options, const Vary& vary, const Program& words) {
  if (options.trace.empty()) throw ConfigError("replay: give a trace, or --wire and --as");
  const auto& recorded = options.observers.recorded;
  if (recorded.software || recorded.calls)
    throw ConfigError("--record-software and --record-calls: a replay has no software to record");
  if (options.observers.check || options.observers.follow.any())
    throw ConfigError("--check, --waterfall and --perfetto examine programs and drivers: a replay has none");
  return vary.axes.empty() ? rerun::rerun(options) : sweep::run_sweep(sweep_of(options, vary, words));
}

}  // namespace

Command add_replay(CLI::App& app, const Program& words) {
  CLI::App& command =
      *app.add_subcommand("replay", "repeat a recorded run without its programs, or replace a real NIC in a capture");
  const auto options = std::make_shared<replay::ReplayOptions>();
  const auto again = std::make_shared<rerun::RerunOptions>();
  auto* trace = command.add_option("TRACE", again->trace, "a run recorded with --record-software");
  auto* wire = command.add_option("--wire", options->wire, "a capture of both directions, in pcap or pcapng");
  auto* as = command.add_option("--as", options->as, "IP address of the NIC to replace");
  wire->type_name("CAPTURE")->needs(as)->excludes(trace);
  as->type_name("ADDRESS")->needs(wire);
  auto* json = command.add_option("--json", options->json,
                                  "write the results to this file; -: to standard output, and all other output to "
                                  "stderr");
  json->type_name("FILE");
  command.add_option("--nic", again->nic, "NIC profile, instead of the recorded NIC's parameters")
      ->type_name("NIC")
      ->needs(trace);
  command
      .add_option("--host-profile", again->host,
                  "host profile (costs of CPU and kernel), instead of the recorded costs")
      ->type_name("PROFILE")
      ->needs(trace);
  command
      .add_flag("--as-possible", again->as_possible,
                "keep the recorded delay between each step of the software and the event before it, instead of the "
                "step's recorded time")
      ->needs(trace);
  add_sets(command, again->sets, "set a parameter that differs from the recorded run; may be repeated");
  add_faults(command, again->faults);
  add_observers(command, again->observers);
  add_engine(command, options->engine);
  const auto vary = std::make_shared<Vary>();
  add_vary(command, *vary, "trace's name")->needs(trace);
  command.footer(
      "The exit status is 0 if all events agree; 1 if an event differs; 2 if the input cannot be replayed; 3 if "
      "--engine "
      "lockstep finds a difference. With --vary: the exit status of `sweep`. See docs/replay.md.");
  return {&command, [options, again, vary, &words] {
            if (!options->wire.empty()) return replay::replay_wire(*options);
            again->engine = options->engine;
            again->json = options->json;
            return replay_recording(*again, *vary, words);
          }};
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// rnicsim replay: repeats a recorded run without its programs, or takes the place of a real NIC in a capture.
#include "sim/replay/replay_wire.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"
#include "sim/config/config_error.h"
#include "sim/rerun/rerun.h"

namespace rnicsim::sim {

Command add_replay(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "replay", "drive the NICs of a recorded run without its programs; or take a real NIC's place in a capture");
  const auto options = std::make_shared<replay::ReplayOptions>();
  const auto again = std::make_shared<rerun::RerunOptions>();
  auto* trace = command.add_option("TRACE", again->trace, "a run that was recorded with --record-software");
  auto* wire = command.add_option("--wire", options->wire, "a capture of both directions, pcap or pcapng");
  auto* as = command.add_option("--as", options->as, "the IP address of the NIC to replace");
  wire->type_name("CAPTURE")->needs(as)->excludes(trace);
  as->type_name("ADDRESS")->needs(wire);
  auto* json = command.add_option("--json", options->json,
                                  "write the results to this file; -: to standard output, and all else to stderr");
  json->type_name("FILE")->needs(wire);
  command.add_option("--nic", again->nic, "NIC profile, in the place of the recorded NIC's parameters")
      ->type_name("NIC")
      ->needs(trace);
  command.add_option("--host-profile", again->host, "what the hosts cost, in the place of what was recorded")
      ->type_name("PROFILE")
      ->needs(trace);
  command
      .add_flag("--as-possible", again->as_possible,
                "do each step of the software so long after what it waited for as in the recorded run, not at its "
                "recorded time")
      ->needs(trace);
  add_sets(command, again->sets, "a parameter that has another value than in the recorded run");
  add_faults(command, again->faults);
  add_observers(command, again->observers);
  add_engine(command, options->engine);
  command.footer(
      "The exit status is 0 when all agrees, 1 when something differs, 2 when there is nothing to replay, "
      "3 when the RTL's referee objects; docs/replay.md.");
  return {&command, [options, again] {
            if (!options->wire.empty()) return replay::replay_wire(*options);
            if (again->trace.empty()) throw ConfigError("replay: a trace is needed, or --wire and --as");
            if (again->observers.record_software)
              throw ConfigError("--record-software: a replay has no software to record");
            if (again->observers.check || again->observers.follow.any())
              throw ConfigError(
                  "--check, --waterfall and --perfetto look at programs and drivers, which a replay lacks");
            again->engine = options->engine;
            return rerun::rerun(*again);
          }};
}

}  // namespace rnicsim::sim

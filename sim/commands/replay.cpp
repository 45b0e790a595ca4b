// rnicsim replay: in the place of a real NIC.
#include "sim/replay/replay.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_replay(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("replay", "take a real NIC's place in a capture, and compare what ours sends and delivers");
  const auto options = std::make_shared<replay::ReplayOptions>();
  command.add_option("--wire", options->wire, "a capture of both directions, pcap or pcapng")
      ->required()
      ->type_name("CAPTURE");
  command.add_option("--as", options->as, "the IP address of the NIC to replace")->required()->type_name("ADDRESS");
  add_json(command, options->json);
  add_engine(command, options->engine);
  command.footer(
      "The exit status is 0 when all agrees, 1 when something differs, 2 when there is nothing to replay, "
      "3 when the RTL's referee objects; docs/replay.md.");
  return {&command, [options] { return replay::replay_wire(*options); }};
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay_wire.h"

#include <fmt/format.h>

#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/replay/report.h"
#include "sim/results/json_output.h"

namespace rnicsim::sim::replay {
namespace {

// Upper limit of the 8-bit field in which real NICs negotiate READs and atomics in flight.
constexpr std::uint32_t kMostRdAtomic = 255;

}  // namespace

Replay replay_as(std::span<const CapturedFrame> frames, const roce::Gid& address, const EngineOptions& options) {
  EngineParams params;
  if (!options.kind.empty()) params.kind = options.kind;
  nic::CapabilityParams capabilities;
  capabilities.max_rd_atomic = kMostRdAtomic;
  params.limit(capabilities);
  const Abilities abilities{
      .uc = capabilities.uc, .ud = capabilities.ud, .rd_atomic = static_cast<std::uint8_t>(capabilities.max_rd_atomic)};
  Engines engines(params, options.fst);
  const auto engine = engines.factory()(
      {.max_rd_atomic = abilities.rd_atomic, .invalidate = capabilities.invalidate, .windows = capabilities.windows});
  Replay replay = replay_frames(frames, address, *engine, &engines, abilities);
  replay.engine = params.kind;
  return replay;
}

int replay_wire(const ReplayOptions& options) {
  const auto address = parse_address(options.as);
  if (!address) throw ConfigError(fmt::format("--as: '{}' is not an IPv4 or IPv6 address", shown(options.as)));
  const auto frames = read_capture(options.wire);
  JsonOutput json(options.json);
  const Replay replay = [&] {
    try {
      return replay_as(frames, *address, options.engine);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", shown(options.wire.string()), error.what()));
    }
  }();
  fmt::print("{}", report_text(replay));
  json.write(report_json(replay));
  return replay.differences() == 0 ? 0 : 1;
}

}  // namespace rnicsim::sim::replay

#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/json_output.h"
#include "sim/replay/cm_judge.h"
#include "sim/replay/judge.h"
#include "sim/replay/report.h"

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

// As many READs and atomics as real NICs agree on: eight bits tell how many.
constexpr std::uint32_t kMostRdAtomic = 255;

// Bytes that the engine answers a READ with: the driver refuses it only where its memory is at fault.
std::uint64_t answered_bytes(const QpEnvironment& qp, const Request& read) {
  const std::uint64_t length = read.packet->headers.reth->length;
  if (read.refusal != Aeth::kRemoteAccessError && read.refusal != Aeth::kRemoteOperationError) return length;
  const auto before = static_cast<std::uint64_t>(distance(read.first_psn(), read.refused_psn));
  return std::min(length, before * roce::mtu_bytes(qp.path_mtu));
}

// Our answers to READs are kept: a length that nothing in the capture bears out would fill the memory.
void check_reads(const Replay& replay) {
  constexpr std::uint64_t kAlways = std::uint64_t{64} << 20;
  std::uint64_t held = 0, asked = 0;
  for (const auto& packet : replay.capture.packets) held += packet.payload.size();
  for (const auto& qp : replay.environment.qps)
    for (const auto& request : qp.requests)
      if (request.packet->row().operation == roce::Operation::read) asked += answered_bytes(qp, request);
  if (asked > kAlways + 4 * held)
    throw ConfigError(fmt::format("its READs ask for {} bytes, and all its packets hold {}", asked, held));
}

template <class Visit>
void each_comparison(const Replay& replay, Visit&& visit) {
  for (const auto* list : {&replay.comparisons, &replay.deliveries, &replay.requests})
    for (const auto& comparison : *list) visit(comparison);
  visit(replay.managed);
}

}  // namespace

std::uint64_t Replay::compared() const {
  std::uint64_t count = environment.count(Role::answer);
  for (const auto& qp : environment.requesters)
    count += static_cast<std::uint64_t>(std::ranges::count(qp.events, true, &WireEvent::sent));
  return count;
}

std::uint64_t Replay::differences() const {
  std::uint64_t count = strays.size();
  each_comparison(*this, [&](const Comparison& comparison) { count += comparison.differences.size(); });
  return count;
}

EquivalenceCounts Replay::equivalences() const {
  EquivalenceCounts counts{};
  each_comparison(*this, [&](const Comparison& comparison) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += comparison.equivalences[i];
  });
  return counts;
}

Replay replay_frames(std::span<const CapturedFrame> frames, const roce::Gid& address, nic::QpEngine& engine,
                     const Engines* made_by, Abilities abilities) {
  Replay replay{.capture = parse_capture(frames)};
  replay.environment = implied_environment(replay.capture, address, abilities);
  check_reads(replay);
  EngineHost host(engine, abilities.rd_atomic, made_by);
  const auto& qps = replay.environment.qps;
  ResponderDriver responder(host, replay.environment);
  const auto answered = responder.run();
  replay.memory_use = responder.memory_use();
  for (std::size_t i = 0; i < qps.size(); ++i) {
    replay.comparisons.push_back(judge_responder(qps[i], answered[i]));
    replay.deliveries.push_back(compare_deliveries(answered[i].deliveries, qps[i].deliveries));
  }
  for (const auto& qp : replay.environment.requesters)
    replay.requests.push_back(judge_requester(qp, RequesterDriver(host, qp).run()));
  replay.management = cm_traffic(replay.capture, address);
  replay.managed = judge_management(replay.management, address);
  for (const auto* stray : replay.environment.strays)
    replay.strays.push_back({Subject::answer, stray->frame, std::nullopt, decoded(packet_of(*stray)), {}});
  return replay;
}

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
  if (!address) throw ConfigError(fmt::format("--as: '{}' is no IPv4 or IPv6 address", shown(options.as)));
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

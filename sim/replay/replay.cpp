// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/replay/cm/cm_validator.h"
#include "sim/replay/validator.h"

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

// Bytes of the engine's answer to a READ. The driver refuses a READ only for errors of its memory.
std::uint64_t answered_bytes(const QpEnvironment& qp, const Request& read) {
  const std::uint64_t length = read.packet->headers.reth->length;
  if (read.refusal != Aeth::kRemoteAccessError && read.refusal != Aeth::kRemoteOperationError) return length;
  const auto before = static_cast<std::uint64_t>(distance(read.first_psn(), read.refused_psn));
  return std::min(length, before * roce::mtu_bytes(qp.path_mtu));
}

// Limits the memory for our READ answers, which are kept: a captured request may ask for a length without any answer.
void check_reads(const Replay& replay) {
  constexpr std::uint64_t kAlways = std::uint64_t{64} << 20;
  std::uint64_t held = 0, asked = 0;
  for (const auto& packet : replay.capture.packets) held += packet.payload.size();
  for (const auto& qp : replay.environment.qps)
    for (const auto& request : qp.requests)
      if (request.packet->row().operation == roce::Operation::read) asked += answered_bytes(qp, request);
  if (asked > kAlways + 4 * held)
    throw ConfigError(fmt::format("the capture's READs request {} bytes, but all its packets hold {}", asked, held));
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
    replay.comparisons.push_back(validate_responder(qps[i], answered[i]));
    replay.deliveries.push_back(compare_deliveries(answered[i].deliveries, qps[i].deliveries));
  }
  for (const auto& qp : replay.environment.requesters)
    replay.requests.push_back(validate_requester(qp, RequesterDriver(host, qp).run()));
  replay.management = cm_traffic(replay.capture, address);
  replay.managed = validate_management(replay.management, address);
  for (const auto* stray : replay.environment.strays)
    replay.strays.push_back({Subject::answer, stray->frame, std::nullopt, decoded(packet_of(*stray)), {}});
  return replay;
}

}  // namespace rnicsim::sim::replay

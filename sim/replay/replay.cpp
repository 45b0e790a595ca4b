#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <utility>

#include "sim/config/config_error.h"
#include "sim/replay/report.h"

namespace rnicsim::sim::replay {
namespace {

Answer answer_of(const WirePacket& packet) { return {packet.frame, packet.headers, packet.payload}; }

std::vector<Asked> asked_of(const QpEnvironment& qp) {
  std::vector<Asked> asked;
  for (const auto& request : qp.requests)
    asked.push_back({.frame = request.packet->frame,
                     .last = request.last_psn(),
                     .ack_request = request.packet->headers.bth.ack_request,
                     .duplicate = request.duplicate,
                     .executed = request.executed,
                     .msn = request.msn});
  return asked;
}

// Our answers to READs are kept: a length that nothing in the capture bears out would fill the memory.
void check_reads(const Replay& replay) {
  constexpr std::uint64_t kAlways = std::uint64_t{64} << 20;
  std::uint64_t held = 0, asked = 0;
  for (const auto& packet : replay.capture.packets) held += packet.payload.size();
  for (const auto& qp : replay.environment.qps)
    for (const auto& request : qp.requests)
      if (request.packet->row().operation == roce::Operation::read && request.refusal == 0)
        asked += request.packet->headers.reth->length;
  if (asked > kAlways + 4 * held)
    throw ConfigError(fmt::format("its READs ask for {} bytes, and all its packets hold {}", asked, held));
}

}  // namespace

std::uint64_t Replay::compared() const { return environment.count(Role::answer); }

std::uint64_t Replay::differences() const {
  std::uint64_t count = strays.size();
  for (const auto& comparison : comparisons) count += comparison.differences.size();
  return count;
}

EquivalenceCounts Replay::equivalences() const {
  EquivalenceCounts counts{};
  for (const auto& comparison : comparisons)
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += comparison.equivalences[i];
  return counts;
}

Replay replay_frames(std::span<const CapturedFrame> frames, const roce::Gid& address, nic::QpEngine& engine,
                     const Engines* made_by) {
  Replay replay{.capture = parse_capture(frames)};
  replay.environment = implied_environment(replay.capture, address);
  check_reads(replay);
  const auto& qps = replay.environment.qps;
  Driver driver(engine, replay.environment, made_by);
  const auto ours = driver.run();
  replay.memory_use = driver.memory_use();
  for (std::size_t i = 0; i < qps.size(); ++i) {
    std::vector<Answer> theirs;
    for (const auto* answer : qps[i].answers) theirs.push_back(answer_of(*answer));
    replay.comparisons.push_back(compare(asked_of(qps[i]), ours[i], theirs));
  }
  for (const auto* stray : replay.environment.strays) replay.strays.push_back({std::nullopt, answer_of(*stray), {}});
  return replay;
}

int replay_wire(const ReplayOptions& options) {
  const auto address = parse_address(options.as);
  if (!address) throw ConfigError(fmt::format("--as: '{}' is no IPv4 or IPv6 address", shown(options.as)));
  const auto frames = read_capture(options.wire);
  EngineParams params;
  if (!options.engine.kind.empty()) params.kind = options.engine.kind;
  nic::CapabilityParams capabilities;
  params.limit(capabilities);
  Engines engines(params, options.engine.fst);
  const auto engine = engines.factory()({.invalidate = capabilities.invalidate, .windows = capabilities.windows});
  Replay replay = [&] {
    try {
      return replay_frames(frames, *address, *engine, &engines);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", shown(options.wire.string()), error.what()));
    }
  }();
  replay.engine = params.kind;
  fmt::print("{}", report_text(replay));
  if (options.json) write_report(*options.json, replay);
  return replay.differences() == 0 ? 0 : 1;
}

}  // namespace rnicsim::sim::replay

// SPDX-License-Identifier: Apache-2.0
#include "sim/warnings/pause_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/ports/line_timing.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/priority_map.h"
#include "sim/config/config.h"
#include "sim/warnings/priority_list.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMost = 8;
constexpr std::uint64_t kPauseBytes = 84;  // length of a pause frame on the line

// One end of a cable: the priorities for which it sends pauses, and the priorities whose pauses it obeys.
struct End {
  std::string name;
  std::string asks_by;  // name of the parameter
  std::string obeys_by;
  std::uint32_t asks = 0;
  std::uint32_t obeys = 0;
  std::uint64_t headroom = 0;
  std::string headroom_by;
  PriorityMap map;  // priority of each frame
  std::string map_by;
};

// The parameter that maps frames to priorities.
std::string map_path(const char* group, const PriorityParams& params) {
  const bool by_dscp = params.trusted() == PriorityMap::Trust::dscp;
  return fmt::format("{}.{}", group, by_dscp ? "dscp_priority" : "pcp_priority");
}

End end_of(const Config& config, std::uint32_t node) {
  const auto& topology = config.topology;
  const auto name = topology.node_name(node);
  if (topology.is_switch(node)) {
    const auto& params = config.switch_of(node - topology.interfaces.size());
    const auto priorities = params.pfc.priorities;
    const bool shares = params.buffer.size.bytes != 0;
    const auto headroom = shares ? params.buffer.lossless.xoff : params.pfc.headroom;
    return {name,
            "switch.pfc.priorities",
            "switch.pfc.priorities",
            priorities,
            priorities,
            headroom.bytes,
            shares ? "switch.buffer.lossless.xoff" : "switch.pfc.headroom",
            params.priority.map(),
            map_path("switch", params.priority)};
  }
  const auto nic = config.nic_of(node);
  const auto& buffer = nic.receive_buffer;
  const auto headroom = buffer.size.bytes > buffer.xoff.bytes ? buffer.size.bytes - buffer.xoff.bytes : 0;
  return {name,
          "nic.receive_buffer.pfc",
          "nic.port.pfc",
          buffer.pfc,
          nic.port.pfc,
          headroom,
          "nic.receive_buffer.size less xoff",
          nic.port.priorities(),
          map_path("nic.port", nic.port.priority)};
}

// Warns about PFC on a priority that no frame has. PFC on all priorities is no mistake.
std::optional<std::string> unused_priorities(const End& end, const std::string& by, std::uint32_t priorities) {
  const auto unused = priorities & ~end.map.used();
  if (unused == 0 || priorities == kAllPriorities) return std::nullopt;
  const bool by_dscp = end.map.trust() == PriorityMap::Trust::dscp;
  return fmt::format("{}: no frame has priority {}, because no {} has this priority ({})", by, priority_list(unused),
                     by_dscp ? "DSCP" : "PCP", end.map_by);
}

void look_at(const End& end, const End& peer, std::uint64_t needed, std::vector<std::string>& warnings) {
  const auto one_sided = end.asks & ~peer.obeys;
  if (one_sided != 0)
    warnings.push_back(fmt::format(
        "PFC on one side: {} lets {} pause priority {} ({}), but {} does not obey ({}); frames will be lost", end.name,
        peer.name, priority_list(one_sided), end.asks_by, peer.name, peer.obeys_by));
  // A switch has one parameter for asking and obeying, and it is no mistake if a NIC asks for no pause.
  const bool in_vain = end.obeys != 0 && end.obeys != kAllPriorities && (end.obeys & peer.asks) == 0;
  if (in_vain && end.obeys_by != end.asks_by)
    warnings.push_back(fmt::format("PFC on one side: {} obeys pauses of priority {} ({}), but {} asks for none ({})",
                                   end.name, priority_list(end.obeys), end.obeys_by, peer.name, peer.asks_by));
  if ((end.asks & peer.obeys) != 0 && end.headroom < needed)
    warnings.push_back(
        fmt::format("{}: headroom of {} ({}) is less than the bytes that {} sends until a pause acts, {}", end.name,
                    to_string(ByteCount{end.headroom}), end.headroom_by, peer.name, to_string(ByteCount{needed})));
}

}  // namespace

std::vector<std::string> pause_warnings(const Config& config) {
  std::vector<std::string> warnings;
  const auto& topology = config.topology;
  for (std::size_t cable = 0; cable < topology.cables.size(); ++cable) {
    const auto [from, to] = topology.cables[cable];
    const auto rate = config.port_of(cable).rate;
    // Time of both directions on the cable, and of the pause frame itself.
    const auto flight = 2 * config.link_of(cable).latency + rate.time_for({kPauseBytes});
    const auto needed =
        static_cast<std::uint64_t>(static_cast<double>(flight.ps) * static_cast<double>(rate.bits_per_second) / 8e12);
    const auto one = end_of(config, from), other = end_of(config, to);
    look_at(one, other, needed, warnings);
    look_at(other, one, needed, warnings);
    for (const auto& end : {one, other})
      for (const auto& [by, priorities] : {std::pair(end.asks_by, end.asks), std::pair(end.obeys_by, end.obeys)})
        if (auto text = unused_priorities(end, by, priorities))
          if (std::ranges::find(warnings, *text) == warnings.end()) warnings.push_back(std::move(*text));
  }
  if (warnings.size() > kMost) {
    const auto more = warnings.size() - kMost;
    warnings.resize(kMost);
    warnings.push_back(fmt::format("{} more warnings like these", more));
  }
  return warnings;
}

}  // namespace rnicsim::sim

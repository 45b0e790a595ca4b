// The messages that a queue pair's packets are made of, each once, where packets came twice or are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/posted.h"
#include "sim/replay/requester_environment.h"

namespace rnicsim::sim::wire_workload {

struct Messages {
  std::vector<replay::Posted> whole;
  std::size_t packets_again = 0;
  std::size_t in_part = 0;            // messages of which packets are missing
  std::vector<std::uint32_t> holes{};  // frames before which packets are missing
};

// RC: up to the first packet that never came, since what is behind a missing packet has PSNs that nothing explains.
// `path_mtu` becomes larger if only that makes the PSNs of READs follow one another.
Messages reliable_messages(const replay::RequesterEnvironment& qp, std::uint8_t& path_mtu);
// UC: of which nothing is missing.
Messages unreliable_messages(std::span<const replay::WirePacket* const> sent, std::uint32_t mtu);
// UD: a packet each.
Messages datagrams(std::span<const replay::WirePacket* const> sent, std::uint32_t mtu);

}  // namespace rnicsim::sim::wire_workload

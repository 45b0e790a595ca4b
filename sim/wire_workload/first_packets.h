// SPDX-License-Identifier: Apache-2.0
// Finds the messages in a queue pair's packets, each once, although packets were sent again or are missing.
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
  std::size_t in_part = 0;             // messages with missing packets
  std::vector<std::uint32_t> holes{};  // frames before which packets are missing
};

// RC: the messages up to the first packet that is missing, because the PSNs after a missing packet cannot be explained.
// Increases `path_mtu` if the PSNs of READs are consecutive only with a larger MTU.
Messages reliable_messages(const replay::RequesterEnvironment& qp, std::uint8_t& path_mtu);
// UC: the messages without a missing packet.
Messages unreliable_messages(std::span<const replay::WirePacket* const> sent, std::uint32_t mtu);
// UD: each packet is a message.
Messages datagrams(std::span<const replay::WirePacket* const> sent, std::uint32_t mtu);

}  // namespace rnicsim::sim::wire_workload

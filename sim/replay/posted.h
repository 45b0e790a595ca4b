// SPDX-License-Identifier: Apache-2.0
// Work requests that a NIC's own packets imply, from the first transmission of each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/nic/personality/values.h"
#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

struct Posted {
  std::uint32_t frame = 0;  // frame of the first packet; the request was posted before it
  nic::SendOpcode opcode{};
  roce::Psn first;
  std::uint32_t packets = 1;  // number of PSNs used
  std::uint32_t length = 0;
  const WirePacket* head = nullptr;     // first packet, at its first transmission
  const WirePacket* tail = nullptr;     // last packet; nullptr: the capture ended before
  std::vector<std::byte> payload;       // only for a SEND, WRITE or atomic WRITE
  std::optional<roce::Status> outcome;  // implied by the answers; nullopt: no completion
  std::vector<std::byte> brought;       // data returned for a READ or an atomic

  // True: completed only by a response, not by an ACK.
  bool wants_data() const {
    const auto operation = head->row().operation;
    return operation == roce::Operation::read || operation == roce::Operation::atomic ||
           operation == roce::Operation::atomic_write;
  }
};

struct PostedRequests {
  std::vector<Posted> requests;
  bool unfinished = false;            // the capture ends in the middle of the last message
  std::optional<std::uint32_t> hole;  // packets before this frame are missing, so nothing after it can be inferred
};

// Number of PSNs of a request packet.
std::uint32_t psns_of(const WirePacket& request, std::uint32_t mtu);

// `sent`: all request packets of one QP, in the order of the wire.
PostedRequests implied_requests(std::span<const WirePacket* const> sent, std::uint32_t mtu);

}  // namespace rnicsim::sim::replay

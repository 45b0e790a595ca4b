// The work requests that a NIC's own packets imply: each message as it was first sent.
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
  std::uint32_t frame = 0;  // of its first packet: it was posted before
  nic::SendOpcode opcode{};
  roce::Psn first;
  std::uint32_t packets = 1;  // PSNs that it takes
  std::uint32_t length = 0;
  const WirePacket* head = nullptr;         // its first packet, as it was first sent
  const WirePacket* tail = nullptr;         // its last one; nullptr: the capture ended before
  std::vector<std::byte> payload;           // of a SEND or WRITE, atomic or not
  std::optional<roce::Status> outcome;  // that the answers imply; nullopt: none
  std::vector<std::byte> brought;           // what the answers brought to a READ or an atomic

  // Only a response answers for it.
  bool wants_data() const {
    const auto operation = head->row().operation;
    return operation == roce::Operation::read || operation == roce::Operation::atomic ||
           operation == roce::Operation::atomic_write;
  }
};

struct PostedRequests {
  std::vector<Posted> requests;
  bool unfinished = false;            // the capture ends in the middle of the last one
  std::optional<std::uint32_t> hole;  // a frame before which packets are missing, so that nothing can be inferred
};

// How many PSNs a request packet stands for.
std::uint32_t psns_of(const WirePacket& request, std::uint32_t mtu);

// `sent`: all request packets of one QP, in order.
PostedRequests implied_requests(std::span<const WirePacket* const> sent, std::uint32_t mtu);

}  // namespace rnicsim::sim::replay

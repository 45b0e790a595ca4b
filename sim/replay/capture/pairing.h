// SPDX-License-Identifier: Apache-2.0
// Assigns streams of answers to streams of requests. An answer names only the requester's QP, a request only the
// responder's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

// Requests from one QP of a requester to one QP of a responder. `peer`: the other address, not the replayed one.
struct RequestStream {
  roce::Gid peer{};
  std::vector<const WirePacket*> packets;
};

// Answers to one QP of a requester.
struct AnswerStream {
  roce::Gid peer{};
  roce::Qpn to;
  std::vector<const WirePacket*> packets;
};

// `own`: the replayed address sent the answers; false: it received them.
std::vector<AnswerStream> answer_streams(std::span<const WirePacket* const> answers, bool own);

// For each stream of requests the index of its stream of answers; nullopt: none. A stream of answers goes to the
// requests that match most of its PSNs.
std::vector<std::optional<std::size_t>> pair_answers(std::span<const RequestStream> requests,
                                                     std::span<const AnswerStream> answers);

// The smallest path MTU for a payload of this size, as enum ibv_mtu.
std::uint8_t mtu_for(std::uint32_t payload);
std::uint32_t largest_payload(std::span<const WirePacket* const> packets);

}  // namespace rnicsim::sim::replay

// Which answers belong to which requests: an answer names the requester's QP only, a request the responder's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

// Requests of one requester's QP to one responder's. `peer`: who is not the address that is replayed.
struct RequestStream {
  roce::Gid peer{};
  std::vector<const WirePacket*> packets;
};

// Answers to one QP of one requester.
struct AnswerStream {
  roce::Gid peer{};
  roce::Qpn to;
  std::vector<const WirePacket*> packets;
};

// `own`: the address gave them; else it got them.
std::vector<AnswerStream> answer_streams(std::span<const WirePacket* const> answers, bool own);

// Of each stream of requests, the index of its answers: streams of answers go to the requests that explain most of
// their PSNs.
std::vector<std::optional<std::size_t>> pair_answers(std::span<const RequestStream> requests,
                                                     std::span<const AnswerStream> answers);

// The smallest path MTU that a payload fits, as enum ibv_mtu.
std::uint8_t mtu_for(std::uint32_t payload);
std::uint32_t largest_payload(std::span<const WirePacket* const> packets);

}  // namespace rnicsim::sim::replay

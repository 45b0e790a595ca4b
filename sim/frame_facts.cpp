// SPDX-License-Identifier: Apache-2.0
#include "sim/frame_facts.h"

#include "model/cm/messages.h"
#include "model/nic/packets/packet.h"
#include "model/roce/packet.h"

namespace rnicsim::sim {
namespace {

// Offset in the BTH of the first byte that the ICRC covers in full: routers may change the bytes before.
constexpr std::size_t kCheckedFromInBth = 5;

constexpr std::uint32_t kManagementQp = 1;

std::optional<std::uint8_t> management(const roce::Bth& bth, const Frame& frame) {
  if (bth.opcode != roce::Opcode::ud_send_only || bth.destination.value != kManagementQp) return std::nullopt;
  const auto envelope = cm::decode(frame.payload().bytes());
  return envelope ? std::optional(static_cast<std::uint8_t>(envelope->message.index())) : std::nullopt;
}

// `header_bytes`: all bytes before the payload.
fabric::FrameFacts facts_of(const Frame& frame, const roce::Bth& bth, std::size_t header_bytes) {
  const auto bth_offset = header_bytes - roce::encoded_size(roce::info(bth.opcode));
  return {static_cast<std::uint8_t>(bth.opcode), bth.destination.value, bth.psn.value(), management(bth, frame),
          static_cast<std::uint32_t>(bth_offset + kCheckedFromInBth)};
}

}  // namespace

std::optional<fabric::FrameFacts> frame_facts(const Frame& frame) {
  if (const auto* packet = frame.as<nic::Packet>()) return facts_of(frame, packet->headers.bth, frame.header_bytes());
  const auto parsed = roce::parse_frame(frame.header_span(), frame.size());
  if (parsed.error != roce::ParseError::none) return std::nullopt;
  return facts_of(frame, parsed.headers.bth, parsed.payload_offset);
}

}  // namespace rnicsim::sim

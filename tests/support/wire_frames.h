// SPDX-License-Identifier: Apache-2.0
// Frames of RoCEv2 packets for tests of the replay: built from headers, or changed and given a valid ICRC again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/roce/packet.h"
#include "sim/replay/capture/capture_file.h"

namespace rnicsim::sim::replay::test {

std::vector<std::byte> frame_of(const roce::FrameAddresses& addresses, roce::Headers headers,
                                std::span<const std::byte> payload);
// Rewrites the ICRC of an IPv4 or IPv6 frame.
void seal(CapturedFrame& frame);

// Builds a capture, packet by packet, between a peer and the replayed NIC.
class Wire {
 public:
  static constexpr std::uint32_t kQpn = 0x11;
  static constexpr std::uint32_t kPeerQpn = 0x22;

  // Packets of the peer's requests, and the NIC's answers. Each function returns the frame's number. One second passes
  // between frames.
  std::uint32_t request(roce::Headers headers, std::uint32_t payload = 0);
  std::uint32_t answer(roce::Headers headers, std::span<const std::byte> payload = {});
  std::uint32_t answer(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn);
  // Packets of the NIC's own requests, and the peer's answers.
  std::uint32_t own_request(roce::Headers headers, std::uint32_t payload = 0);
  std::uint32_t answer_to_own(roce::Headers headers, std::span<const std::byte> payload = {});
  std::uint32_t answer_to_own(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn);
  // A UD packet to the QP with number `qpn`.
  std::uint32_t datagram(std::uint32_t psn, std::uint32_t qpn, std::uint32_t qkey, std::uint32_t payload);
  // A MAD between the two QP1s; `own`: sent by the NIC.
  std::uint32_t management(bool own, std::span<const std::byte> mad);

  static roce::Gid address(std::uint8_t host);
  static roce::Headers headers(roce::Opcode opcode, std::uint32_t psn, bool ack_request = true);
  // The payload of request().
  static std::vector<std::byte> pattern(std::uint32_t bytes);

  Duration step = Duration{1'000'000'000'000};
  std::vector<CapturedFrame> frames;

 private:
  std::uint32_t add(std::uint8_t from, std::uint8_t to, const roce::Headers& headers,
                    std::span<const std::byte> payload);
};

inline constexpr std::uint8_t kNic = 1;
inline constexpr std::uint8_t kPeer = 2;

}  // namespace rnicsim::sim::replay::test

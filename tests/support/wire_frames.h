// Frames of RoCEv2 packets for tests of the replay: made from headers, or changed and sealed with a right ICRC again.
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

// A capture that grows packet by packet between a peer and the NIC that is replayed.
class Wire {
 public:
  static constexpr std::uint32_t kQpn = 0x11;
  static constexpr std::uint32_t kPeerQpn = 0x22;

  // Each returns the frame's number; a second passes from frame to frame.
  std::uint32_t request(roce::Headers headers, std::uint32_t payload = 0);
  std::uint32_t answer(roce::Headers headers, std::span<const std::byte> payload = {});
  std::uint32_t answer(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn);
  // The same the other way round: of the NIC's own, and what the peer answers.
  std::uint32_t own_request(roce::Headers headers, std::uint32_t payload = 0);
  std::uint32_t answer_to_own(roce::Headers headers, std::span<const std::byte> payload = {});
  std::uint32_t answer_to_own(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn);
  // A datagram to the QP of that number.
  std::uint32_t datagram(std::uint32_t psn, std::uint32_t qpn, std::uint32_t qkey, std::uint32_t payload);
  // Between the two QP1: of the NIC's own, or to it.
  std::uint32_t management(bool own, std::span<const std::byte> mad);

  static roce::Gid address(std::uint8_t host);
  static roce::Headers headers(roce::Opcode opcode, std::uint32_t psn, bool ack_request = true);
  // The bytes that request() sends.
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

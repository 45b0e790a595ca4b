// SPDX-License-Identifier: Apache-2.0
// Items that pass between a queue pair's engine and the packet pipelines.
#pragma once

#include <cstdint>

#include "model/base/frame.h"
#include "model/base/payload.h"
#include "model/base/ports/priority_map.h"
#include "model/nic/packets/packet.h"
#include "model/nic/packets/receive/buffer_hold.h"
#include "model/roce/headers.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Qpn;

// A received frame and its space in the receive buffer, from steering on.
struct FrameIn {
  Frame frame;
  BufferHold hold{};
};

struct PacketIn {
  PacketHandle packet;
  Qpn destination;              // a QP; the packet itself may be for a multicast group
  std::uint16_t gid_index = 0;  // index of the destination in the GID table; not for a group
  Payload grh{};                // UD: roce::kGrhBytes before the payload in memory
  BufferHold hold{};            // buffer that the frame holds

  const roce::Headers& headers() const { return packet->headers; }
  const Payload& payload() const { return packet->payload(); }
};

// Credit classes of the engine: one for each priority of the port, and one for all frames that programs wrote.
inline constexpr std::uint8_t kRawCredits = kPriorities, kCreditClasses = kPriorities + 1;

struct PacketOut {
  Qpn source;                     // the sending QP: source and destination determine the UDP source port
  std::uint16_t gid_index = 0;    // the sender's address
  PacketRef packet;               // complete except for the source address, which packet_tx adds
  bool credited = true;           // the packet took a credit of the engine, which returns when it leaves
  std::uint8_t credit_class = 0;  // the class whose credit the packet took
};

}  // namespace rnicsim::nic

// What passes between a queue pair's engine and the packet pipelines.
#pragma once

#include <cstdint>

#include "model/base/frame.h"
#include "model/base/payload.h"
#include "model/base/priority_map.h"
#include "model/nic/packets/buffer_hold.h"
#include "model/nic/packets/packet.h"
#include "model/roce/headers.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Qpn;

// A frame that came, and the room that it takes in the receive buffer, from when it is steered.
struct FrameIn {
  Frame frame;
  BufferHold hold{};
};

struct PacketIn {
  PacketHandle packet;
  Qpn destination;                       // a QP; the packet may be for a group of them
  std::uint16_t gid_index = 0;           // where the destination stands in the GID table; not of a group's
  Payload grh{};                         // UD: roce::kGrhBytes that stand before the payload in memory
  BufferHold hold{};                     // its frame's

  const roce::Headers& headers() const { return packet->headers; }
  const Payload& payload() const { return packet->payload(); }
};

// Credit classes of the engine: one for each priority of the port, and one for all frames that programs wrote.
inline constexpr std::uint8_t kRawCredits = kPriorities, kCreditClasses = kPriorities + 1;

struct PacketOut {
  Qpn source;                            // the sending QP: with the destination it makes the UDP source port
  std::uint16_t gid_index = 0;           // the sender's address
  PacketRef packet;                      // complete but for that, which packet_tx adds
  bool credited = true;                  // it took a credit of the engine's, which its leaving gives back
  std::uint8_t credit_class = 0;         // the class whose credit the packet took
};

}  // namespace rnicsim::nic

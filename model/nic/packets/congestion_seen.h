// What a queue pair's engine tells the notification point.
#pragma once

#include <cstdint>

#include "model/base/frame.h"
#include "model/roce/packet.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

// A packet came that a switch had marked (CE), or one that tells of a loss before it.
struct CongestionSeen {
  enum class Cause : std::uint8_t { marked, lost };
  Cause cause;
  roce::Qpn qpn;                           // that received it
  roce::Qpn peer;                          // the sender's
  std::uint16_t gid_index;                 // of the receiver's address
  std::uint8_t traffic_class;              // of the packet
  VlanTag tag;                             // and its tag
  roce::FrameAddresses to;                 // the sender's address, and the way there
};

}  // namespace rnicsim::nic

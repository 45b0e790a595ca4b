// SPDX-License-Identifier: Apache-2.0
// Input of the notification point from a queue pair's engine.
#pragma once

#include <cstdint>

#include "model/base/frame.h"
#include "model/roce/packet.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

// A packet arrived that a switch had marked (CE), or that shows a loss before it.
struct CongestionSeen {
  enum class Cause : std::uint8_t { marked, lost };
  Cause cause;
  roce::Qpn qpn;               // the receiving QP
  roce::Qpn peer;              // the sending QP
  std::uint16_t gid_index;     // index of the receiving address
  std::uint8_t traffic_class;  // traffic class of the packet
  VlanTag tag;                 // VLAN tag of the packet
  roce::FrameAddresses to;     // the sender's address and the path attributes
};

}  // namespace rnicsim::nic

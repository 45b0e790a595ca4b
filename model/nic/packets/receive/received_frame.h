// SPDX-License-Identifier: Apache-2.0
// Options of a raw queue pair for received frames.
#pragma once

#include "model/nic/packets/packet.h"

namespace rnicsim::nic {

struct ReceiveOptions {
  bool strip_vlan = false;   // the outermost tag is removed and reported in the CQE
  bool scatter_fcs = false;  // the FCS follows the frame

  bool any() const { return strip_vlan || scatter_fcs; }
};

// The frame as it is written to memory.
PacketHandle adapted(const Packet& frame, const ReceiveOptions& options);

}  // namespace rnicsim::nic

// What a raw queue pair wants done to the frames that it receives.
#pragma once

#include "model/nic/packets/packet.h"

namespace rnicsim::nic {

struct ReceiveOptions {
  bool strip_vlan = false;               // the outermost tag comes beside the frame
  bool scatter_fcs = false;              // the FCS comes behind it

  bool any() const { return strip_vlan || scatter_fcs; }
};

// The frame as it is to lie in memory.
PacketHandle adapted(const Packet& frame, const ReceiveOptions& options);

}  // namespace rnicsim::nic

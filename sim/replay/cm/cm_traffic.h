// SPDX-License-Identifier: Apache-2.0
// Connection management (IBTA vol 1, chapter 12) of one address in a capture: the decoded management datagrams to QP1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/cm/messages.h"
#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

struct CmMessage {
  std::uint32_t frame = 0;
  Duration time{};    // since the capture's first frame
  bool sent = false;  // sent by the address; false: by the peer
  roce::Gid peer{};
  cm::Envelope envelope;
};

// A datagram that the communication manager cannot decode, and drops.
struct OddDatagram {
  std::uint32_t frame = 0;
  bool sent = false;
  bool of_cm = false;  // management class is communication management
  std::string what;
};

struct CmTraffic {
  std::vector<CmMessage> messages;  // in order
  std::vector<OddDatagram> odd;
  Duration end{};  // end of the capture
};

CmTraffic cm_traffic(const WireCapture& capture, const roce::Gid& address);

// The message as one line.
std::string decoded(const cm::Envelope& envelope);

}  // namespace rnicsim::sim::replay

// What a capture holds of connection management (IBTA vol 1, chapter 12) with one address: the management datagrams to
// QP1, decoded.
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
  bool sent = false;  // by the address; else by the peer
  roce::Gid peer{};
  cm::Envelope envelope;
};

// A datagram that the communication manager can't read, and drops.
struct OddDatagram {
  std::uint32_t frame = 0;
  bool sent = false;
  bool of_cm = false;  // of its management class
  std::string what;
};

struct CmTraffic {
  std::vector<CmMessage> messages;  // in order
  std::vector<OddDatagram> odd;
  Duration end{};  // of the capture
};

CmTraffic cm_traffic(const WireCapture& capture, const roce::Gid& address);

// In one line.
std::string decoded(const cm::Envelope& envelope);

}  // namespace rnicsim::sim::replay

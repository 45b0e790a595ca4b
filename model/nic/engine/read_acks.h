// Acknowledgements of READ responses, of one queue pair (nic.transport.read_acks): what this side, as the responder,
// has sent and the requester has not acknowledged; and what this side, as a requester, gives back with the next one.
#pragma once

#include "model/nic/engine/telemetry_returns.h"
#include "model/nic/engine/unanswered_packets.h"

namespace rnicsim::nic {

struct ReadAcks {
  UnansweredPackets unanswered;
  TelemetryReturns returns;
  bool mark_to_echo = false;               // a response had a mark (CE)
};

}  // namespace rnicsim::nic

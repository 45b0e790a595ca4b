// SPDX-License-Identifier: Apache-2.0
// Acknowledgements of READ responses of one queue pair (nic.transport.read_acks): responses that this side has sent as
// responder and that are not acknowledged, and the data that this side returns as requester with its next
// acknowledgement.
#pragma once

#include "model/nic/engine/telemetry_returns.h"
#include "model/nic/engine/unanswered_packets.h"

namespace rnicsim::nic {

struct ReadAcks {
  UnansweredPackets unanswered;
  TelemetryReturns returns;
  bool mark_to_echo = false;  // a response had a mark (CE)
};

}  // namespace rnicsim::nic

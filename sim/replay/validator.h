// SPDX-License-Identifier: Apache-2.0
// Compares the behaviour of an engine's queue pair with the real NIC's in the capture.
#pragma once

#include "sim/replay/comparer.h"
#include "sim/replay/environment.h"
#include "sim/replay/requester_driver.h"
#include "sim/replay/responder_driver.h"

namespace rnicsim::sim::replay {

SentPacket packet_of(const WirePacket& packet);

Comparison validate_responder(const QpEnvironment& qp, const ResponderDriver::Result& ours);
// Compares the packets, the completions and the timers.
Comparison validate_requester(const RequesterEnvironment& qp, const RequesterDriver::Result& ours);

}  // namespace rnicsim::sim::replay

// Judges what a queue pair of an engine did by what the capture implies of the real NIC's.
#pragma once

#include "sim/replay/comparer.h"
#include "sim/replay/environment.h"
#include "sim/replay/requester_driver.h"
#include "sim/replay/responder_driver.h"

namespace rnicsim::sim::replay {

SentPacket packet_of(const WirePacket& packet);

Comparison judge_responder(const QpEnvironment& qp, const ResponderDriver::Result& ours);
// With its completions and its timers.
Comparison judge_requester(const RequesterEnvironment& qp, const RequesterDriver::Result& ours);

}  // namespace rnicsim::sim::replay

// SPDX-License-Identifier: Apache-2.0
// The order in which a port acted on the messages of its capture. A message received just before the port sent another
// one may not have reached the communication manager yet: the two crossed in the port.
#pragma once

#include "sim/replay/cm/cm_traffic.h"

namespace rnicsim::sim::replay {

// Longest time for a message to reach a manager on a busy host. Much shorter than any timeout.
inline constexpr Duration kReaction{100'000'000'000};

// Moves a received message after the port's messages that no manager sends once it knows the received one.
CmTraffic as_acted_upon(CmTraffic traffic);

}  // namespace rnicsim::sim::replay

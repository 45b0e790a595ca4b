// Compares what our communication manager sends with what the port of a capture sent, message by message.
#pragma once

#include "sim/replay/cm/cm_traffic.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

Comparison judge_management(const CmTraffic& traffic, const roce::Gid& address);

}  // namespace rnicsim::sim::replay

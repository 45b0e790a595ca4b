// SPDX-License-Identifier: Apache-2.0
// Compares the messages of our communication manager with those of a capture's port.
#pragma once

#include "sim/replay/cm/cm_traffic.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

Comparison validate_management(const CmTraffic& traffic, const roce::Gid& address);

}  // namespace rnicsim::sim::replay

// SPDX-License-Identifier: Apache-2.0
// The network as this process's host sees it.
#pragma once

#include "sim/host/kernel/netlink/network_devices.h"

namespace rnicsim::clock {

// Requires a session.
HostView own_view();

}  // namespace rnicsim::clock

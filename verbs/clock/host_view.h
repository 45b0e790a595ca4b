// The network as this process's host sees it.
#pragma once

#include "verbs/clock/network_devices.h"

namespace rnicsim::clock {

// Requires a session.
HostView own_view();

}  // namespace rnicsim::clock

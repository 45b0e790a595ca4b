// What this process's host knows of the network.
#pragma once

#include "verbs/clock/network_devices.h"

namespace rnicsim::clock {

// While there is a session.
HostView own_view();

}  // namespace rnicsim::clock

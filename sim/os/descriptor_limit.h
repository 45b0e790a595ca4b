// SPDX-License-Identifier: Apache-2.0
// Limit on the number of files that this process may have open.
#pragma once

#include <sys/resource.h>

namespace rnicsim::sim {

// Raises the soft limit to the hard limit, since the simulator holds descriptors for many processes. Returns the limits
// from before.
rlimit raise_descriptor_limit();

}  // namespace rnicsim::sim

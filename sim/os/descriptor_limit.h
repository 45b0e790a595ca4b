// How many files this process may have open.
#pragma once

#include <sys/resource.h>

namespace rnicsim::sim {

// The simulator holds descriptors for many processes: its soft limit becomes the hard one. Returns the limits as they
// were.
rlimit raise_descriptor_limit();

}  // namespace rnicsim::sim

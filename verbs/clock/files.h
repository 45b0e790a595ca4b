// The simulated host's own files under /sys, /dev and /proc.
#pragma once

namespace rnicsim::clock {

// Once attached, and again in a forked child.
void find_host_files(const char* socket_name, const char* host);

}  // namespace rnicsim::clock

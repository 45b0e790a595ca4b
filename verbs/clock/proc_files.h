// Files under /proc that would tell of this machine, or of the real process.
#pragma once

namespace rnicsim::clock {

// A descriptor of what the simulated host has there; -1: nothing else than the machine, or it can't be opened.
int open_proc_file(const char* path, int flags);

}  // namespace rnicsim::clock

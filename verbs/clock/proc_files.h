// Files that would tell of what this machine does besides, or of the real process.
#pragma once

namespace rnicsim::clock {

// A host is told the size of the machine's memory, and that half of it is free.
inline unsigned long long free_memory(unsigned long long all) { return all / 2; }

// A descriptor of what the simulated host has there; -1: nothing else than the machine, or it can't be opened.
int open_proc_file(const char* path, int flags);

}  // namespace rnicsim::clock

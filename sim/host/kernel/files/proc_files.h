// SPDX-License-Identifier: Apache-2.0
// Files of /proc and /sys that would show this machine's other activity, or the real process.
#pragma once

namespace rnicsim::clock {

// A host reports the machine's memory size, and half of it as free.
inline unsigned long long free_memory(unsigned long long all) { return all / 2; }

// A descriptor with the host's own content of `path`; -1: the host has none, or the file cannot be opened so.
int open_proc_file(const char* path, int flags);

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Files whose contents the library makes when they are opened: files of /proc (proc_files.h), and random devices.
#pragma once

#include <stdio.h>

namespace rnicsim::clock {

// A descriptor or stream of such a file; -1 or nullptr: `path` is another file, or cannot be opened in this mode.
int open_made_file(const char* path, int flags);
FILE* open_made_stream(const char* path, const char* mode);
// In a new image: its standard input may be a random device.
void take_standard_input();

}  // namespace rnicsim::clock

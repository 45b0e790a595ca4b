// Files whose contents a simulated host makes when they are opened: the time since its boot, and chance.
#pragma once

#include <stdio.h>

namespace rnicsim::clock {

// A descriptor or stream of such a file; -1 or nullptr: `path` is none, or it can't be opened so.
int open_made_file(const char* path, int flags);
FILE* open_made_stream(const char* path, const char* mode);
// In a new image: its standard input may be such a file.
void take_standard_input();

}  // namespace rnicsim::clock

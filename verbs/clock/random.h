// The simulated host's chance: from the run's seed, so that two runs draw the same.
#pragma once

#include <cstddef>

namespace rnicsim::clock {

// Fills `buffer`: this process's next random bytes.
void draw(void* buffer, std::size_t bytes);

// The 16 bytes that the kernel gives each program at its start (AT_RANDOM). The C library has used the real ones by
// now, for what it shows to nobody.
void redraw_auxiliary_bytes();

}  // namespace rnicsim::clock

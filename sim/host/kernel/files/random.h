// SPDX-License-Identifier: Apache-2.0
// Random numbers of a simulated host, drawn from the run's seed: two runs draw the same.
#pragma once

#include <cstddef>

namespace rnicsim::clock {

// Fills `buffer` with this process's next random bytes.
void draw(void* buffer, std::size_t bytes);

// Replaces the 16 random bytes that the kernel gives each program at its start (AT_RANDOM). The C library has used the
// real ones before, for values that no program prints.
void redraw_auxiliary_bytes();

}  // namespace rnicsim::clock

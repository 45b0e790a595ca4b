#pragma once

namespace rnicsim::clock {

// shmat, under a name of our own, as those of mappings.h are.
void* attach_segment(int number, const void* address, int flags);

}  // namespace rnicsim::clock

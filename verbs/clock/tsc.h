// rdtsc and rdtscp: made to fault, and answered from the thread's clock (one cycle a nanosecond).
#pragma once

#include <signal.h>

namespace rnicsim::clock {

void trap_tsc();    // in this thread and those it starts
void untrap_tsc();  // before exec: the next image's loader would die of it

// If `context` stands at a counter read: emulates it and steps over it.
bool emulate_tsc(void* context);

}  // namespace rnicsim::clock

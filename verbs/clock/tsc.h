// rdtsc and rdtscp: made to fault, and answered from the thread's clock (one cycle a nanosecond).
#pragma once

#include <signal.h>

#include <cstdint>

namespace rnicsim::clock {

// The C library's own clock reads go through the vDSO and compare the counter with the kernel's: they need the real
// one. Nobody else is to find it (Go's runtime looks) in the auxiliary vector, behind the environment.
void hide_vdso(char** environment);
bool in_vdso(std::uintptr_t address);

void trap_tsc();    // in this thread and those it starts
void untrap_tsc();  // before exec: the next image's loader would die of it

// If `context` stands at a counter read: emulates it and steps over it.
bool emulate_tsc(void* context);

}  // namespace rnicsim::clock

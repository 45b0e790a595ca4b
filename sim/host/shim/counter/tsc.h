// SPDX-License-Identifier: Apache-2.0
// rdtsc and rdtscp fault, and are answered from the thread's clock (one cycle a nanosecond).
#pragma once

#include <signal.h>

#include <cstdint>

namespace rnicsim::clock {

// Removes the vDSO from the auxiliary vector, which lies behind the environment (Go's runtime would find it there), and
// from the loader's tables. A counter read inside the vDSO gets the real counter, because the vDSO compares it with the
// kernel's values.
void hide_vdso(char** environment);

void trap_tsc();    // in this thread and the threads that it starts
void untrap_tsc();  // before exec: the fault would kill the next image's loader

// Emulates the counter read at `context` and steps over it. False: no counter read stands there.
bool emulate_tsc(void* context);

}  // namespace rnicsim::clock

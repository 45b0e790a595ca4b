// SPDX-License-Identifier: Apache-2.0
// The fault of rdtsc and rdtscp (prctl(2), PR_SET_TSC), and how the C library reads clocks without these instructions.
// Independent of the simulator.
#pragma once

#include <cstdint>

namespace rnicsim::clock {

enum class CounterRead { none, rdtsc, rdtscp };

CounterRead counter_read_at(std::uintptr_t code);

// In this thread, the threads that it starts, and the image that it executes. False: refused by a seccomp filter.
bool trap_counter();
void untrap_counter();

// From now on the C library reads clocks by system calls, not by the code of the vDSO at `vdso`, which reads the
// counter. A program without clocks needs this, too: the C library may read a clock while SIGSEGV is blocked (aio(7)),
// and the fault would kill the program. Calls of gettimeofday(2) that are linked already still enter the vDSO.
void leave_vdso(std::uintptr_t vdso);
bool in_vdso(std::uintptr_t address);  // of the last leave_vdso()

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Instructions that read the time-stamp counter often. A trap costs microseconds of real time, so rdtsc is replaced by
// a jump to generated code, which reads the thread's clock, executes the instruction behind rdtsc and jumps back.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace rnicsim::clock {

// Counts a trapped rdtsc at `place`. True: the instruction is a jump now, and the thread continues there.
bool note_counter_read(std::uintptr_t place);

// The jump also covers the instruction behind rdtsc. A thread that comes to that instruction from elsewhere, or that
// trapped before the jump was written, meets a breakpoint and continues at the moved instruction. False: the breakpoint
// has another cause.
bool resume_behind_counter_read(ucontext_t& context);
bool is_behind_counter_read(std::uintptr_t place);

}  // namespace rnicsim::clock

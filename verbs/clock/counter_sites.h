// Where a program reads the time-stamp counter again and again: a trap costs microseconds, so the instruction becomes a
// jump to code of ours, which reads the thread's clock and goes on with what stood behind.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace rnicsim::clock {

// rdtsc has trapped there. True: the thread is to go on there, for it is a jump now.
bool note_counter_read(std::uintptr_t place);

// The jump covers the instruction behind, too. Who comes to that from elsewhere, or had trapped before, meets a
// breakpoint, and is sent where the instruction is now; false: it is another breakpoint.
bool resume_behind_counter_read(ucontext_t& context);
bool is_behind_counter_read(std::uintptr_t place);

}  // namespace rnicsim::clock

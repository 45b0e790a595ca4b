// System calls by instruction, past the C library's functions: made to raise SIGSYS (syscall user dispatch of
// Linux 5.11), and answered as syscall() answers them. The C library's own go on to the kernel, as do the loader's.
#pragma once

#include <signal.h>

namespace rnicsim::clock {

void trap_calls();  // in this thread; those that it starts, and children, have to ask for themselves

// If the signal is for a call by instruction: answers it in `context`.
bool emulate_call(const siginfo_t& info, void* context);

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// System calls by an instruction of the program instead of a function of the C library. They raise SIGSYS (syscall user
// dispatch, Linux 5.11) and are answered as syscall() answers them. System calls of the C library and of the loader go
// to the kernel.
#pragma once

#include <signal.h>

namespace rnicsim::clock {

void trap_calls();  // for the calling thread; new threads and forked children call this themselves

// Answers the system call in `context`. False: the signal has another cause.
bool emulate_call(const siginfo_t& info, void* context);

}  // namespace rnicsim::clock

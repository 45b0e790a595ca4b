// SPDX-License-Identifier: Apache-2.0
// SIGCHLD in simulated time. The real kernel sends SIGCHLD when a child really ends; the program's handler is called
// when the child has ended in simulated time.
#pragma once

#include <signal.h>

namespace rnicsim::clock {

// sigaction(2) for SIGCHLD.
int set_child_action(const struct sigaction* action, struct sigaction* old);
// Tells the simulator whether SIGCHLD reports stopped children (SA_NOCLDSTOP); also in each new process.
void tell_of_child_action();
// In a forked child: forgets the parent's pending SIGCHLD.
void forget_child_signal();
// True: SIGCHLD was raised, and the signal mask blocks it.
bool child_signal_waits();
// Raises SIGCHLD in the calling thread. The handler runs at once unless the thread blocks the signal.
void raise_child_signal(const siginfo_t& info);

}  // namespace rnicsim::clock

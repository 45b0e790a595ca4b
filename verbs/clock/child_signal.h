// SIGCHLD in simulated time: the real kernel sends it when a child really ends; the program's handler is called when
// the child's end has come for the simulator.
#pragma once

#include <signal.h>

namespace rnicsim::clock {

// As sigaction(2) of SIGCHLD.
int set_child_action(const struct sigaction* action, struct sigaction* old);
// A new process tells the simulator of it.
void tell_of_child_action();
// A new process has none.
void forget_child_signal();
// It was raised, and is held back by the mask.
bool child_signal_waits();
// In this thread, at once unless it blocks the signal.
void raise_child_signal(const siginfo_t& info);

}  // namespace rnicsim::clock

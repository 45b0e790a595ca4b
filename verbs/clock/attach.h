// How a process comes to its place on its simulated host (session.h), and how a forked child leaves its parent's.
#pragma once

#include <cstdint>

namespace rnicsim::clock {

// Connects with these Hello flags; exits with a clear message when the simulator refuses. Called by the constructor and
// in a forked child.
void attach(std::uint32_t hello_flags, std::uint32_t parent_pid);
// In a forked child: lets go of the parent's session.
void abandon();

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Attaches a process to its simulated host (session.h), and detaches a forked child from its parent's session.
#pragma once

#include <cstdint>

namespace rnicsim::clock {

// Connects with these Hello flags. If the simulator refuses, the process prints the reason and exits. Called by the
// library's constructor and in a forked child.
void attach(std::uint32_t hello_flags, std::uint32_t parent_pid);
// In a forked child: closes the parent's session.
void abandon();

}  // namespace rnicsim::clock

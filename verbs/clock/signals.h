// The three signals that simulated time needs for itself: SIGSEGV (counter reads), kLookSignal (the simulator asks what
// a thread that does not come back is doing) and SIGTRAP (single steps while it answers). A program's own handlers for
// the first and the last are kept and called for what is not ours.
#pragma once

#include <signal.h>

namespace rnicsim::clock {

inline constexpr int kLookSignal = 62;

void take_signals();
// Without the three.
sigset_t allowed(const sigset_t& set);

}  // namespace rnicsim::clock

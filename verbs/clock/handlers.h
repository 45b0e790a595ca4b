// The signals that simulated time needs for itself: SIGSEGV (counter reads), SIGSYS (system calls by instruction),
// kLookSignal (the simulator asks what a thread that does not come back is doing) and SIGTRAP (single steps while it
// answers).
#pragma once

namespace rnicsim::clock {

void take_signals();  // in each thread, before the simulator may send it one

}  // namespace rnicsim::clock

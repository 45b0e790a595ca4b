// SPDX-License-Identifier: Apache-2.0
// Signals that simulated time needs for itself: SIGSEGV (reads of the time-stamp counter), SIGSYS (system calls by
// instruction), kLookSignal (the simulator asks whether a thread spins) and SIGTRAP (single steps of that check).
#pragma once

namespace rnicsim::clock {

void take_signals();  // in each thread, before the simulator can signal it

}  // namespace rnicsim::clock

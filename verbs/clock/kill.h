// Signals by the numbers that a simulated program knows.
#pragma once

#include <sys/types.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// tgkill(2) with a thread of this process as the program knows it; -1 and errno.
long signal_thread(pid_t process, pid_t thread, int signal);

// Ends the wait of a thread of this process that is being cancelled.
void end_wait_of(abi::ThreadSlot& slot, const abi::ThreadSlot& cancelled);

// In this thread, at once unless it blocks the signal.
void raise_here(const abi::SignalRecord& signal);

}  // namespace rnicsim::clock

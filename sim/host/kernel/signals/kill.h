// SPDX-License-Identifier: Apache-2.0
// Signals by the numbers of processes and threads that a simulated program knows.
#pragma once

#include <sys/types.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// tgkill(2) to a thread of this process, by its virtual number; -1 with errno.
long signal_thread(pid_t process, pid_t thread, int signal);

// Ends the wait of a thread of this process that is being cancelled.
void end_wait_of(abi::ThreadSlot& slot, const abi::ThreadSlot& cancelled);

// Raises the signal in the calling thread. It is delivered at once unless the thread blocks it.
void raise_here(const abi::SignalRecord& signal);

}  // namespace rnicsim::clock

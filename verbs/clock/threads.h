// Threads of this process that the simulator knows.
#pragma once

#include <pthread.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// nullptr: another thread.
abi::ThreadSlot* slot_of(pthread_t thread);
// True: the process has threads besides the caller.
bool other_threads();
// In a forked child: it has no other threads.
void forget_other_threads();

}  // namespace rnicsim::clock

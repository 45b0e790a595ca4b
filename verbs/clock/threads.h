// The threads of this process that the simulator knows.
#pragma once

#include <pthread.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// nullptr: another's.
abi::ThreadSlot* slot_of(pthread_t thread);
// Whether this process has threads besides the caller's.
bool other_threads();
// Of a forked process: it has none.
void forget_other_threads();

}  // namespace rnicsim::clock

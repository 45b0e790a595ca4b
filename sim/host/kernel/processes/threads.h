// SPDX-License-Identifier: Apache-2.0
// Threads of this process that the simulator knows.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// nullptr: another thread.
abi::ThreadSlot* slot_of(pthread_t thread);
// True: the process has threads besides the caller.
bool other_threads();
// Registers a thread that was made, with the index of its slot.
void note_thread(std::uint32_t index, pthread_t thread);
// In a new thread: the simulator is to learn of its end.
void arm_leaving();
// In a forked child: it has no other threads.
void forget_other_threads();

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Cancellation of threads (pthread_cancel(3)). The C library cancels a thread only at cancellation points of this
// library: elsewhere it would unwind the thread from the middle of a call, or through a function that must not throw.
#pragma once

#include "model/abi/attach.h"

namespace rnicsim::clock {

// prepare_cancellation() resets the state of a slot before its thread starts. begin_cancellation() disables the C
// library's own cancellation in the thread.
void prepare_cancellation(const abi::ThreadSlot& slot);
void begin_cancellation(const abi::ThreadSlot& slot);
// Marks the thread as cancelled. True: the thread ends now; false: it has disabled cancellation, and the request stays
// pending.
bool mark_cancelled(const abi::ThreadSlot& slot);
// Sets PTHREAD_CANCEL_ENABLE or _DISABLE for the calling thread; returns the former state.
int set_cancel_state(const abi::ThreadSlot& slot, int state);
// Ends the calling thread if it was cancelled and cancellation is enabled.
void cancellation_point();
// The calling thread is not cancelled while the object lives.
class Uncancelled {
 public:
  Uncancelled();
  ~Uncancelled();
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  const abi::ThreadSlot* const slot_;
  const int before_;
};

}  // namespace rnicsim::clock

// Cancellation of threads (pthread_cancel(3)). The C library is kept from it, but at points of ours: it would unwind a
// thread out of the middle of a call, or through what may not throw.
#pragma once

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Of a thread to come, by whoever makes it; and the thread itself.
void prepare_cancellation(const abi::ThreadSlot& slot);
void begin_cancellation(const abi::ThreadSlot& slot);
// True: it is to act on it now, not when it wants to be cancelled again.
bool mark_cancelled(const abi::ThreadSlot& slot);
// PTHREAD_CANCEL_ENABLE or _DISABLE, of the calling thread; returns the one before.
int set_cancel_state(const abi::ThreadSlot& slot, int state);
// Does not return to a thread that was cancelled.
void cancellation_point();
// As long as it lives the calling thread is not cancelled.
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

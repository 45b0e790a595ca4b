// SPDX-License-Identifier: Apache-2.0
// pthread_cancel(3) and related functions. A thread with PTHREAD_CANCEL_ASYNCHRONOUS is cancelled only where others
// are: if it were unwound in the middle of a call, its turn would be left behind.

#include <errno.h>
#include <pthread.h>

#include "sim/host/kernel/processes/threads.h"
#include "sim/host/kernel/signals/kill.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(pthread_cancel);
RNICSIM_NEXT(pthread_setcancelstate);
RNICSIM_NEXT(pthread_setcanceltype);
RNICSIM_NEXT(pthread_testcancel);

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int pthread_cancel(pthread_t thread) {
  abi::ThreadSlot* slot = simulated_slot();
  const abi::ThreadSlot* cancelled = slot != nullptr ? slot_of(thread) : nullptr;
  if (cancelled == nullptr) return next_pthread_cancel(thread);
  const bool at_once = mark_cancelled(*cancelled);
  const int error = next_pthread_cancel(thread);
  if (error == 0 && at_once && cancelled != slot) end_wait_of(*slot, *cancelled);
  return error;
}

RNICSIM_EXPORT int pthread_setcancelstate(int state, int* old) {
  const abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_setcancelstate(state, old);
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  const int before = set_cancel_state(*slot, state);
  if (old != nullptr) *old = before;
  return 0;
}

static constinit thread_local int cancel_type = PTHREAD_CANCEL_DEFERRED;
RNICSIM_EXPORT int pthread_setcanceltype(int type, int* old) {
  if (simulated_slot() == nullptr) return next_pthread_setcanceltype(type, old);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  if (old != nullptr) *old = cancel_type;
  cancel_type = type;
  return 0;
}

RNICSIM_EXPORT void pthread_testcancel() {
  if (simulated_slot() == nullptr) return next_pthread_testcancel();
  cancellation_point();
}

// SPDX-License-Identifier: Apache-2.0
// C11 threads. The C library builds them from the parts of POSIX threads, but under names of their own.

#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cstdint>
#include <new>

#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(thrd_create);
RNICSIM_NEXT(thrd_join);
RNICSIM_NEXT(thrd_sleep);
RNICSIM_NEXT(mtx_lock);
RNICSIM_NEXT(mtx_timedlock);
RNICSIM_NEXT(mtx_unlock);
RNICSIM_NEXT(cnd_wait);
RNICSIM_NEXT(cnd_timedwait);
RNICSIM_NEXT(cnd_signal);
RNICSIM_NEXT(cnd_broadcast);
RNICSIM_NEXT(call_once);

namespace rnicsim::clock {
namespace {

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* opaque) {
  const Start start = *static_cast<Start*>(opaque);
  delete static_cast<Start*>(opaque);
  return reinterpret_cast<void*>(std::intptr_t(start.function(start.argument)));
}

int to_c11(int error) {
  switch (error) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
  }
}

// In the C library, the objects of C11 and POSIX threads are the same.
static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));
pthread_mutex_t* posix(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* posix(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  if (simulated_slot() == nullptr) return next_thrd_create(thread, function, argument);
  auto* start = new (std::nothrow) Start{function, argument};
  if (start == nullptr) return thrd_nomem;
  const int error = ::pthread_create(thread, nullptr, run, start);
  if (error == 0) return thrd_success;
  delete start;
  return error == EAGAIN ? thrd_nomem : thrd_error;
}
RNICSIM_EXPORT int thrd_join(thrd_t thread, int* result) {
  if (simulated_slot() == nullptr) return next_thrd_join(thread, result);
  void* value = nullptr;
  const int error = ::pthread_join(thread, &value);
  if (result != nullptr) *result = int(reinterpret_cast<std::intptr_t>(value));
  return to_c11(error);
}
// -1: a signal came first.
RNICSIM_EXPORT int thrd_sleep(const timespec* time, timespec* left) {
  if (simulated_slot() == nullptr) return next_thrd_sleep(time, left);
  const int error = ::clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

RNICSIM_EXPORT int mtx_lock(mtx_t* mutex) {
  if (simulated_slot() == nullptr) return next_mtx_lock(mutex);
  return to_c11(::pthread_mutex_lock(posix(mutex)));
}
RNICSIM_EXPORT void thrd_yield() { ::sched_yield(); }
RNICSIM_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* deadline) {
  if (simulated_slot() == nullptr) return next_mtx_timedlock(mutex, deadline);
  return to_c11(::pthread_mutex_timedlock(posix(mutex), deadline));
}
RNICSIM_EXPORT int mtx_unlock(mtx_t* mutex) {
  if (simulated_slot() == nullptr) return next_mtx_unlock(mutex);
  return to_c11(::pthread_mutex_unlock(posix(mutex)));
}
RNICSIM_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  if (simulated_slot() == nullptr) return next_cnd_wait(condition, mutex);
  return to_c11(::pthread_cond_wait(posix(condition), posix(mutex)));
}
RNICSIM_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  if (simulated_slot() == nullptr) return next_cnd_timedwait(condition, mutex, deadline);
  return to_c11(::pthread_cond_timedwait(posix(condition), posix(mutex), deadline));
}
RNICSIM_EXPORT int cnd_signal(cnd_t* condition) {
  if (simulated_slot() == nullptr) return next_cnd_signal(condition);
  return to_c11(::pthread_cond_signal(posix(condition)));
}
RNICSIM_EXPORT int cnd_broadcast(cnd_t* condition) {
  if (simulated_slot() == nullptr) return next_cnd_broadcast(condition);
  return to_c11(::pthread_cond_broadcast(posix(condition)));
}
RNICSIM_EXPORT void call_once(once_flag* flag, void (*function)()) {
  if (simulated_slot() == nullptr) return next_call_once(flag, function);
  ::pthread_once(reinterpret_cast<pthread_once_t*>(flag), function);
}

// SPDX-License-Identifier: Apache-2.0
// Locks and other objects that threads wait for. Only one thread of the simulation has its turn, so a lock that is
// taken stays taken until its owner's next turn: a native wait would stop the world. A thread tries the lock and, if it
// is taken, waits on the lock's address; the thread that releases the lock wakes the first waiter.

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "sim/host/kernel/ipc/addresses.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

using rnicsim::clock::Next;
RNICSIM_NEXT(pthread_mutex_lock);
RNICSIM_NEXT(pthread_mutex_timedlock);
RNICSIM_NEXT(pthread_mutex_clocklock);
RNICSIM_NEXT(pthread_mutex_unlock);
RNICSIM_NEXT(pthread_rwlock_rdlock);
RNICSIM_NEXT(pthread_rwlock_timedrdlock);
RNICSIM_NEXT(pthread_rwlock_clockrdlock);
RNICSIM_NEXT(pthread_rwlock_wrlock);
RNICSIM_NEXT(pthread_rwlock_timedwrlock);
RNICSIM_NEXT(pthread_rwlock_clockwrlock);
RNICSIM_NEXT(pthread_rwlock_unlock);
RNICSIM_NEXT(pthread_barrier_init);
RNICSIM_NEXT(pthread_barrier_wait);
RNICSIM_NEXT(pthread_barrier_destroy);
RNICSIM_NEXT(pthread_once);
RNICSIM_NEXT(sem_wait);
RNICSIM_NEXT(sem_timedwait);
RNICSIM_NEXT(sem_clockwait);
RNICSIM_NEXT(sem_post);
// The version is named, because the C library keeps an older condition variable under the same names.
static const Next<int(pthread_cond_t*, pthread_mutex_t*)> next_cond_wait{"pthread_cond_wait", "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_cond_timedwait{"pthread_cond_timedwait",
                                                                                               "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next_cond_clockwait{
    "pthread_cond_clockwait"};
static const Next<int(pthread_cond_t*)> next_cond_signal{"pthread_cond_signal", "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*)> next_cond_broadcast{"pthread_cond_broadcast", "GLIBC_2.3.2"};

namespace rnicsim::clock {
namespace {

// The end of a wait. Not valid: the program's time has nanoseconds out of range.
struct Deadline {
  std::uint64_t at = abi::kForever;
  bool valid = true;

  Deadline() = default;
  Deadline(clockid_t clock, const timespec& time) : at(moment(clock, time)), valid(valid_nanoseconds(time)) {}
  bool is_past(const abi::ThreadSlot& slot) const { return at != abi::kForever && at <= slot.now; }
};

// Fields of the C library's objects (bits/struct_mutex.h, its pthread_cond_common.c and semaphoreP.h): whether
// processes share the object, and the clock of a condition variable's deadlines.
bool is_shared(const pthread_mutex_t& mutex) { return (mutex.__data.__kind & 128) != 0; }
bool is_shared(const pthread_rwlock_t& rwlock) { return rwlock.__data.__shared != 0; }
bool is_shared(const pthread_cond_t& condition) { return (condition.__data.__wrefs & 1) != 0; }
bool is_shared(const sem_t& semaphore) { return reinterpret_cast<const int*>(&semaphore)[2] != 0; }
clockid_t clock_of(const pthread_cond_t& condition) {
  return (condition.__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

template <class Object>
Sharing sharing_of(const Object& object) {
  return clock::sharing_of(is_shared(object));
}

// A thread that spends its time with a mutex held, and takes the mutex again right after its release (polling a queue),
// leaves no gap in which a woken thread could find the mutex free, as it could on real processors. A thread that was
// woken in vain kMostInVain times goes first, and others wait for that for kFirstGoes at most.
constexpr int kMostInVain = 2;
constexpr std::uint64_t kFirstGoes = 100 * kMicrosecond;

// 0, EINVAL, ETIMEDOUT, EINTR for a semaphore, or a result of `attempt` other than EBUSY.
template <class Object, class Try>
int lock(abi::ThreadSlot& slot, const Object& object, const Deadline& deadline, Try attempt) {
  int error;
  std::optional<Starving> starving;
  for (int in_vain = 0; (error = attempt()) == EBUSY; ++in_vain) {
    if (!deadline.valid) return EINVAL;
    if (deadline.is_past(slot)) return ETIMEDOUT;
    if (in_vain == kMostInVain) starving.emplace(&object);
    const bool interrupted = wait_on(slot, &object, deadline.at, sharing_of(object)) == EINTR;
    if (std::is_same_v<Object, sem_t> && interrupted && !restarts_after_signal()) return EINTR;
  }
  return error;
}

// True: a robust mutex that is not recoverable: each waiter gets that error. (trylock reports it, too, but in glibc
// 2.36 only once, because it leaves the mutex locked.)
bool is_lost(const pthread_mutex_t& mutex) {
  constexpr int kNotRecoverable = INT_MAX - 1;
  return mutex.__data.__owner == kNotRecoverable;
}

bool is_own(const abi::ThreadSlot& slot, const pthread_mutex_t& mutex) { return mutex.__data.__owner == int(slot.tid); }

// True: the mutex checks for errors, and the thread that waits for it owns it.
bool is_checked_and_own(const abi::ThreadSlot& slot, const pthread_mutex_t& mutex) {
  constexpr int kKinds = 3;
  return (mutex.__data.__kind & kKinds) == PTHREAD_MUTEX_ERRORCHECK && is_own(slot, mutex);
}

bool is_own(const abi::ThreadSlot& slot, const pthread_rwlock_t& rwlock) {
  return rwlock.__data.__cur_writer == int(slot.tid);
}

int lock_mutex(abi::ThreadSlot& slot, pthread_mutex_t* mutex, const Deadline& deadline = {}) {
  if (Starving::any_at(mutex) && !is_own(slot, *mutex))
    wait_on(slot, mutex, std::min(after(slot.now, kFirstGoes), deadline.at), sharing_of(*mutex));
  return lock(slot, *mutex, deadline, [&] {
    if (is_lost(*mutex)) return ENOTRECOVERABLE;
    const int error = ::pthread_mutex_trylock(mutex);
    return error == EBUSY && is_checked_and_own(slot, *mutex) ? EDEADLK : error;
  });
}
int lock_for_reading(abi::ThreadSlot& slot, pthread_rwlock_t* rwlock, const Deadline& deadline = {}) {
  return lock(slot, *rwlock, deadline,
              [&] { return is_own(slot, *rwlock) ? EDEADLK : ::pthread_rwlock_tryrdlock(rwlock); });
}
int lock_for_writing(abi::ThreadSlot& slot, pthread_rwlock_t* rwlock, const Deadline& deadline = {}) {
  return lock(slot, *rwlock, deadline,
              [&] { return is_own(slot, *rwlock) ? EDEADLK : ::pthread_rwlock_trywrlock(rwlock); });
}

int wait_condition(abi::ThreadSlot& slot, pthread_cond_t* condition, pthread_mutex_t* mutex,
                   const Deadline& deadline = {}) {
  if (!deadline.valid) return EINVAL;
  cancellation_point();
  if (const int error = ::pthread_mutex_unlock(mutex); error != 0) return error;
  const int error = deadline.is_past(slot) ? ETIMEDOUT : wait_on(slot, condition, deadline.at, sharing_of(*condition));
  if (const int then = ::pthread_mutex_lock(mutex); then != 0) return then;  // such as EOWNERDEAD
  if (error == EINTR) cancellation_point();  // a woken thread is not cancelled: its wake-up would be lost
  return error == EINTR ? 0 : error;         // as a spurious wake-up
}

int wait_semaphore(abi::ThreadSlot& slot, sem_t* semaphore, const Deadline& deadline = {}) {
  cancellation_point();
  const int error = lock(slot, *semaphore, deadline, [&] {
    if (::sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return errno;
    cancellation_point();
    return EBUSY;
  });
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// A barrier of this library, in the memory of the C library's barrier.
struct Barrier {
  std::uint32_t ours;  // kOurs; the C library counts arrivals here, starting at 0
  std::uint32_t count;
  std::uint32_t arrived;
  std::uint32_t round;
  Sharing sharing;
  static constexpr std::uint32_t kOurs = 0x52424152;
};
static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t));
Barrier* own_barrier(pthread_barrier_t* barrier) {
  auto* own = reinterpret_cast<Barrier*>(barrier);
  return own->ours == Barrier::kOurs ? own : nullptr;
}

bool is_under_way(const volatile pthread_once_t* control) {
  constexpr int kInProgress = 1, kDone = 2;
  return (*control & (kInProgress | kDone)) == kInProgress;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

// --- Mutexes.

RNICSIM_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  return slot != nullptr ? lock_mutex(*slot, mutex) : next_pthread_mutex_lock(mutex);
}
RNICSIM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_mutex_clocklock(mutex, clock, deadline);
  return lock_mutex(*slot, mutex, {clock, *deadline});
}
RNICSIM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_mutex_timedlock(mutex, deadline);
  return lock_mutex(*slot, mutex, {CLOCK_REALTIME, *deadline});
}
RNICSIM_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  const int error = next_pthread_mutex_unlock(mutex);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, mutex, is_lost(*mutex) ? kEveryone : 1, sharing_of(*mutex));
  return error;
}

// --- Reader-writer locks.

RNICSIM_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  return slot != nullptr ? lock_for_reading(*slot, rwlock) : next_pthread_rwlock_rdlock(rwlock);
}
RNICSIM_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* rwlock, clockid_t clock,
                                              const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_clockrdlock(rwlock, clock, deadline);
  return lock_for_reading(*slot, rwlock, {clock, *deadline});
}
RNICSIM_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_timedrdlock(rwlock, deadline);
  return lock_for_reading(*slot, rwlock, {CLOCK_REALTIME, *deadline});
}
RNICSIM_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  return slot != nullptr ? lock_for_writing(*slot, rwlock) : next_pthread_rwlock_wrlock(rwlock);
}
RNICSIM_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* rwlock, clockid_t clock,
                                              const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_clockwrlock(rwlock, clock, deadline);
  return lock_for_writing(*slot, rwlock, {clock, *deadline});
}
RNICSIM_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_timedwrlock(rwlock, deadline);
  return lock_for_writing(*slot, rwlock, {CLOCK_REALTIME, *deadline});
}
RNICSIM_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept {
  const int error = next_pthread_rwlock_unlock(rwlock);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, rwlock, kEveryone, sharing_of(*rwlock));
  return error;
}

// --- Condition variables.

RNICSIM_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_wait(condition, mutex);
  return wait_condition(*slot, condition, mutex);
}
RNICSIM_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_timedwait(condition, mutex, deadline);
  return wait_condition(*slot, condition, mutex, {clock_of(*condition), *deadline});
}
// Used by std::condition_variable with a steady clock.
RNICSIM_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                          const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_clockwait(condition, mutex, clock, deadline);
  return wait_condition(*slot, condition, mutex, {clock, *deadline});
}
RNICSIM_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_signal(condition);
  wake(*slot, condition, 1, sharing_of(*condition));
  return 0;
}
RNICSIM_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_broadcast(condition);
  wake(*slot, condition, kEveryone, sharing_of(*condition));
  return 0;
}

// --- Semaphores.

RNICSIM_EXPORT int sem_wait(sem_t* semaphore) {
  abi::ThreadSlot* slot = simulated_slot();
  return slot != nullptr ? wait_semaphore(*slot, semaphore) : next_sem_wait(semaphore);
}
RNICSIM_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sem_clockwait(semaphore, clock, deadline);
  return wait_semaphore(*slot, semaphore, {clock, *deadline});
}
RNICSIM_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sem_timedwait(semaphore, deadline);
  return wait_semaphore(*slot, semaphore, {CLOCK_REALTIME, *deadline});
}
RNICSIM_EXPORT int sem_post(sem_t* semaphore) noexcept {
  const int error = next_sem_post(semaphore);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, semaphore, 1, sharing_of(*semaphore));
  return error;
}

// --- Barriers and pthread_once().

RNICSIM_EXPORT int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                        unsigned count) noexcept {
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) ::pthread_barrierattr_getpshared(attributes, &shared);
  if (simulated_slot() == nullptr) return next_pthread_barrier_init(barrier, attributes, count);
  if (count == 0) return EINVAL;
  *reinterpret_cast<Barrier*>(barrier) = {Barrier::kOurs, count, 0, 0, sharing_of(shared != PTHREAD_PROCESS_PRIVATE)};
  return 0;
}
RNICSIM_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  Barrier* own = own_barrier(barrier);
  if (slot == nullptr || own == nullptr) return next_pthread_barrier_wait(barrier);
  if (++own->arrived == own->count) {
    own->arrived = 0;
    ++own->round;
    wake(*slot, own, kEveryone, own->sharing);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  for (const std::uint32_t round = own->round; own->round == round;) wait_on(*slot, own, abi::kForever, own->sharing);
  return 0;
}
RNICSIM_EXPORT int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  Barrier* own = own_barrier(barrier);
  if (own == nullptr) return next_pthread_barrier_destroy(barrier);
  *own = {};
  return 0;
}

RNICSIM_EXPORT int pthread_once(pthread_once_t* control, void (*routine)()) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_once(control, routine);
  while (is_under_way(control)) wait_on(*slot, control, abi::kForever);
  // If the routine throws, a waiting thread starts it again.
  const struct Waker {
    abi::ThreadSlot& slot;
    const void* address;
    ~Waker() { wake(slot, address, kEveryone); }
  } waker{*slot, control};
  return next_pthread_once(control, routine);
}

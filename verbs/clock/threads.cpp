// Threads and what they wait for. Only one thread of the simulation has its turn, so a lock that is taken stays taken
// until its owner's next turn: waiting for it natively would stop the world. Locks are tried; a thread that fails waits
// on the lock's address, and whoever releases it wakes the first.

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

#include "verbs/clock/attach.h"
#include "verbs/clock/next.h"
#include "verbs/clock/signals.h"
#include "verbs/clock/tsc.h"
#include "verbs/clock/turn.h"

using rnicsim::clock::Next;
RNICSIM_NEXT(pthread_create);
RNICSIM_NEXT(pthread_join);
RNICSIM_NEXT(pthread_mutex_lock);
RNICSIM_NEXT(pthread_mutex_unlock);
RNICSIM_NEXT(pthread_rwlock_rdlock);
RNICSIM_NEXT(pthread_rwlock_wrlock);
RNICSIM_NEXT(pthread_rwlock_unlock);
RNICSIM_NEXT(sem_wait);
RNICSIM_NEXT(sem_timedwait);
RNICSIM_NEXT(sem_post);
// The C library keeps an older condition variable under the same names.
static const Next<int(pthread_cond_t*, pthread_mutex_t*)> next_cond_wait{"pthread_cond_wait", "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_cond_timedwait{"pthread_cond_timedwait",
                                                                                               "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*)> next_cond_signal{"pthread_cond_signal", "GLIBC_2.3.2"};
static const Next<int(pthread_cond_t*)> next_cond_broadcast{"pthread_cond_broadcast", "GLIBC_2.3.2"};

namespace rnicsim::clock {
namespace {

constexpr std::uint64_t kEveryone = ~0ull;

// Threads of this process that wait on an address: a release with nobody waiting makes no call.
std::atomic<int> waiters{0};
// Threads begun and not ended, but for the first.
std::atomic<int> begun{0};

int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline) {
  ++waiters;
  const int error = call(slot, abi::Call::wait_address, {reinterpret_cast<std::uint64_t>(address), deadline});
  --waiters;
  return error;
}
void wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most) {
  if (waiters.load() != 0) call(slot, abi::Call::wake_address, {reinterpret_cast<std::uint64_t>(address), most});
}

template <class Try>
int lock(abi::ThreadSlot& slot, const void* address, Try attempt) {
  int error;
  while ((error = attempt()) == EBUSY) wait_on(slot, address, abi::kForever);
  return error;
}

// Deadlines of pthread and sem calls are on the wall clock unless the condition variable says otherwise; both count the
// same time, from different zeros.
std::uint64_t deadline_of(const timespec& time) {
  constexpr std::uint64_t kSecond = 1'000'000'000'000;
  const std::uint64_t epoch = session()->header().epoch;
  auto seconds = std::uint64_t(time.tv_sec);
  if (seconds >= epoch) seconds -= epoch;
  return seconds * kSecond + std::uint64_t(time.tv_nsec) * 1000;
}

struct Start {
  void* (*function)(void*);
  void* argument;
  abi::ThreadSlot* slot;
};

// Whose thread ended, so that a join need not block in the kernel.
struct Joinable {
  std::atomic<pthread_t> thread{0};
  std::atomic<bool> ended{false};
};
std::array<Joinable, abi::kMaxThreads> joinables;

std::uint32_t index_of(const abi::ThreadSlot& slot) { return std::uint32_t(&slot - &session()->slot(0)); }

// Ends the thread for the simulator, however it ends: by return, pthread_exit or cancellation.
struct Leaver {
  bool armed = false;
  ~Leaver() {
    abi::ThreadSlot* slot = own_slot();
    if (!armed || slot == nullptr || !simulated()) return;
    Joinable& joinable = joinables[index_of(*slot)];
    joinable.ended = true;
    --begun;
    wake(*slot, &joinable, kEveryone);
    own_slot() = nullptr;
    leave(*slot, abi::Call::thread_exit, {0});
  }
};
thread_local Leaver leaver;

void* run_thread(void* opaque) {
  const Start start = *static_cast<Start*>(opaque);
  delete static_cast<Start*>(opaque);
  own_slot() = start.slot;
  start.slot->tid = std::uint32_t(::syscall(SYS_gettid));
  if (simulated()) {
    leaver.armed = true;
    take_signals();
    wait_for_turn();
    trap_tsc();
  }
  return start.function(start.argument);
}

}  // namespace

bool other_threads() { return begun.load(std::memory_order_relaxed) != 0; }

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                                  void* argument) noexcept {
  abi::ThreadSlot* slot = simulated() ? simulated_slot() : own_slot();
  if (slot == nullptr) return next_pthread_create(thread, attributes, function, argument);
  if (call(*slot, abi::Call::thread_new) != 0) return EAGAIN;
  const auto index = std::uint32_t(slot->value);
  joinables[index].ended = false;
  auto* start = new (std::nothrow) Start{function, argument, &session()->slot(index)};
  const int error =
      start != nullptr ? next_pthread_create(thread, attributes, run_thread, start) : EAGAIN;
  if (error == 0) {
    joinables[index].thread = *thread;
    ++begun;
    call(*slot, abi::Call::thread_start, {index});
  } else {
    delete start;
    call(*slot, abi::Call::thread_exit, {index});  // another's slot: this thread goes on
  }
  return error;
}

RNICSIM_EXPORT int pthread_join(pthread_t thread, void** result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_join(thread, result);
  for (Joinable& joinable : joinables) {
    if (joinable.thread != thread) continue;
    while (!joinable.ended) wait_on(*slot, &joinable, abi::kForever);
    joinable.thread = 0;
    break;
  }
  return next_pthread_join(thread, result);
}

RNICSIM_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_mutex_lock(mutex);
  return lock(*slot, mutex, [&] { return ::pthread_mutex_trylock(mutex); });
}
RNICSIM_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  const int error = next_pthread_mutex_unlock(mutex);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, mutex, 1);
  return error;
}

RNICSIM_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_rdlock(rwlock);
  return lock(*slot, rwlock, [&] { return ::pthread_rwlock_tryrdlock(rwlock); });
}
RNICSIM_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pthread_rwlock_wrlock(rwlock);
  return lock(*slot, rwlock, [&] { return ::pthread_rwlock_trywrlock(rwlock); });
}
RNICSIM_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept {
  const int error = next_pthread_rwlock_unlock(rwlock);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, rwlock, kEveryone);
  return error;
}

static int wait_condition(abi::ThreadSlot& slot, pthread_cond_t* condition, pthread_mutex_t* mutex,
                          std::uint64_t deadline) {
  if (const int error = ::pthread_mutex_unlock(mutex); error != 0) return error;
  const int error = wait_on(slot, condition, deadline);
  ::pthread_mutex_lock(mutex);
  return error;
}
RNICSIM_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_wait(condition, mutex);
  return wait_condition(*slot, condition, mutex, abi::kForever);
}
RNICSIM_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_timedwait(condition, mutex, deadline);
  return wait_condition(*slot, condition, mutex, deadline_of(*deadline));
}
RNICSIM_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_signal(condition);
  wake(*slot, condition, 1);
  return 0;
}
RNICSIM_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_cond_broadcast(condition);
  wake(*slot, condition, kEveryone);
  return 0;
}

static int wait_semaphore(abi::ThreadSlot& slot, sem_t* semaphore, std::uint64_t deadline) {
  while (::sem_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    if (wait_on(slot, semaphore, deadline) == ETIMEDOUT) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  return 0;
}
RNICSIM_EXPORT int sem_wait(sem_t* semaphore) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sem_wait(semaphore);
  return wait_semaphore(*slot, semaphore, abi::kForever);
}
RNICSIM_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sem_timedwait(semaphore, deadline);
  return wait_semaphore(*slot, semaphore, deadline_of(*deadline));
}
RNICSIM_EXPORT int sem_post(sem_t* semaphore) noexcept {
  const int error = next_sem_post(semaphore);
  if (abi::ThreadSlot* slot = simulated_slot()) wake(*slot, semaphore, 1);
  return error;
}

// SPDX-License-Identifier: Apache-2.0
// Locks that all workers and their children share, and the invariants within them.
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

struct Mutex {
  pthread_mutex_t mutex;
  int kind;
  bool is_shared;
  int inside;
  Time released;
};
struct Queue {
  static constexpr std::uint32_t kRoom = 2;
  pthread_mutex_t mutex;
  pthread_cond_t not_full, not_empty;
  std::uint64_t first, next;  // numbers of the first entry and of the next entry, counted over all entries
  struct Entry {
    unsigned worker;
    std::uint64_t number;
    Time pushed;
  } entries[kRoom];
  std::uint64_t pushed[kMostWorkers], popped[kMostWorkers];
};
struct Locks {
  Mutex mutexes[8];
  pthread_rwlock_t rwlock;
  int readers, writers;
  Time written, was_read;
  sem_t permits;
  std::atomic<int> holders;
  Queue queue;
  pthread_barrier_t all;
  std::atomic<Time> arrived;
};
constexpr int kPermits = 2;
Locks* locks = nullptr;  // in memory that children share

void make_mutex(Mutex& mutex, int kind, bool shared, bool robust) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutexattr_setpshared(&attributes, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
  if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  expect(pthread_mutex_init(&mutex.mutex, &attributes) == 0, "pthread_mutex_init");
  mutex.kind = kind;
  mutex.is_shared = shared;
}

void acquire(Mutex& mutex) {
  switch (me.dice.below(4)) {
    case 0:
      while (pthread_mutex_trylock(&mutex.mutex) != 0) usleep(3);
      return;
    case 1:
      for (;;) {
        const Time began = now();
        const Time patience = me.dice.below(60) * kMicrosecond;
        const timespec deadline = on_clock(CLOCK_REALTIME, began + patience);
        const int error = pthread_mutex_timedlock(&mutex.mutex, &deadline);
        if (error == 0) return;
        expect(error == ETIMEDOUT, "pthread_mutex_timedlock", error, ETIMEDOUT);
        // A starving thread may be served first, which delays the timeout by up to 100 us.
        expect_elapsed(began, patience, "pthread_mutex_timedlock", kSlack + 100 * kMicrosecond);
      }
    default: {
      const int error = pthread_mutex_lock(&mutex.mutex);
      expect(error == 0, "pthread_mutex_lock", error);
    }
  }
}

void hold(Mutex& mutex) {
  acquire(mutex);
  expect(mutex.inside == 0, "two have a mutex");
  ++mutex.inside;
  expect(now() >= mutex.released - kAhead, "a mutex is taken before it was released", now(), mutex.released);
  if (mutex.kind == PTHREAD_MUTEX_RECURSIVE) {
    expect(pthread_mutex_lock(&mutex.mutex) == 0, "a recursive mutex");
    pthread_mutex_unlock(&mutex.mutex);
  }
  if (mutex.kind == PTHREAD_MUTEX_ERRORCHECK) {
    const int error = pthread_mutex_lock(&mutex.mutex);
    expect(error == EDEADLK, "a mutex that checks", error, EDEADLK);
  }
  pause_a_little();
  expect(mutex.inside == 1, "two have a mutex");
  --mutex.inside;
  mutex.released = now();
  expect(pthread_mutex_unlock(&mutex.mutex) == 0, "pthread_mutex_unlock");
}

// A page that this process shares with its children.
template <class T>
struct SharedPage {
  T* const object =
      static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SharedPage() { expect(static_cast<void*>(object) != MAP_FAILED, "mmap", errno); }
  ~SharedPage() { munmap(object, sizeof(T)); }
  T* operator->() const { return object; }
};

}  // namespace

void make_shared_locks(unsigned workers) {
  locks = new (mmap(nullptr, sizeof(Locks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Locks{};
  int i = 0;
  for (const bool shared : {false, true}) {
    for (const int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK})
      make_mutex(locks->mutexes[i++], kind, shared, false);
    make_mutex(locks->mutexes[i++], PTHREAD_MUTEX_NORMAL, shared, true);
  }
  pthread_rwlockattr_t rwlock;
  pthread_rwlockattr_init(&rwlock);
  pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&locks->rwlock, &rwlock);
  sem_init(&locks->permits, 1, kPermits);
  pthread_mutex_init(&locks->queue.mutex, nullptr);
  pthread_cond_init(&locks->queue.not_full, nullptr);
  pthread_cond_init(&locks->queue.not_empty, nullptr);
  pthread_barrier_init(&locks->all, nullptr, workers);
}

void lock_a_mutex() {
  Mutex* mutex;
  do mutex = &locks->mutexes[me.dice.below(std::size(locks->mutexes))];
  while (me.is_child && !mutex->is_shared);
  hold(*mutex);
}

void lock_for_reading_or_writing() {
  const bool writes = me.dice.once_in(2);
  if (writes) {
    if (me.dice.once_in(3)) {
      while (pthread_rwlock_trywrlock(&locks->rwlock) != 0) usleep(5);
    } else {
      expect(pthread_rwlock_wrlock(&locks->rwlock) == 0, "pthread_rwlock_wrlock");
    }
    expect(locks->readers == 0 && locks->writers == 0, "a writer is not alone", locks->readers, locks->writers);
    expect(now() >= std::max(locks->written, locks->was_read) - kAhead, "a lock is taken before it was released");
    ++locks->writers;
    pause_a_little();
    --locks->writers;
    expect(locks->readers == 0 && locks->writers == 0, "a writer is not alone", locks->readers, locks->writers);
    locks->written = now();
  } else {
    expect(pthread_rwlock_rdlock(&locks->rwlock) == 0, "pthread_rwlock_rdlock");
    expect(locks->writers == 0, "a reader with a writer");
    expect(now() >= locks->written - kAhead, "a lock is taken before it was released");
    ++locks->readers;
    pause_a_little();
    --locks->readers;
    expect(locks->writers == 0, "a reader with a writer");
    locks->was_read = std::max(locks->was_read, now());
  }
  expect(pthread_rwlock_unlock(&locks->rwlock) == 0, "pthread_rwlock_unlock");
}

void take_a_permit() {
  if (me.dice.once_in(3)) {
    while (sem_trywait(&locks->permits) != 0) usleep(4);
  } else {
    expect_call(sem_wait(&locks->permits), "sem_wait");
  }
  expect(++locks->holders <= kPermits, "holders of permits", locks->holders, kPermits);
  pause_a_little();
  --locks->holders;
  sem_post(&locks->permits);
}

// Each worker puts an entry before it takes one, so that the queue suffices for all.
void pass_through_queue() {
  Queue& queue = locks->queue;
  pthread_mutex_lock(&queue.mutex);
  while (queue.next - queue.first == Queue::kRoom) {
    if (me.dice.once_in(2)) {
      pthread_cond_wait(&queue.not_full, &queue.mutex);
    } else {
      const timespec soon = on_clock(CLOCK_REALTIME, now() + me.dice.below(100) * kMicrosecond);
      pthread_cond_timedwait(&queue.not_full, &queue.mutex, &soon);
    }
  }
  queue.entries[queue.next++ % Queue::kRoom] = {me.worker, ++queue.pushed[me.worker], now()};
  pthread_cond_signal(&queue.not_empty);
  pthread_mutex_unlock(&queue.mutex);
  pause_a_little();
  pthread_mutex_lock(&queue.mutex);
  while (queue.next == queue.first) pthread_cond_wait(&queue.not_empty, &queue.mutex);
  const Queue::Entry& entry = queue.entries[queue.first++ % Queue::kRoom];
  expect(now() >= entry.pushed - kAhead, "taken out before it was put in", now(), entry.pushed);
  const std::uint64_t number = ++queue.popped[entry.worker];
  expect(entry.number == number, "the order of a queue", long(entry.number), long(number));
  pthread_cond_broadcast(&queue.not_full);
  pthread_mutex_unlock(&queue.mutex);
}

// The owner of a robust mutex ends; a waiting thread gets EOWNERDEAD.
void leave_a_robust_mutex() {
  struct Left {
    Mutex mutex;
    sem_t taken;
    Time ends;
  };
  SharedPage<Left> left;
  const bool by_child = me.is_child || me.dice.once_in(2);
  make_mutex(left->mutex, PTHREAD_MUTEX_NORMAL, by_child, true);
  sem_init(&left->taken, by_child, 0);
  left->ends = now() + 3 * kMillisecond + me.dice.below(300) * kMicrosecond;
  const auto take = [](void* opaque) -> void* {
    auto* left = static_cast<Left*>(opaque);
    pthread_mutex_lock(&left->mutex.mutex);
    sem_post(&left->taken);
    sleep_until(left->ends);
    return nullptr;
  };
  pthread_t thread{};
  pid_t child = -1;
  if (!by_child) {
    expect(pthread_create(&thread, nullptr, take, left.object) == 0, "pthread_create");
  } else {
    child = fork();
    expect_call(child, "fork");
    if (child == 0) {
      take(left.object);
      _exit(0);
    }
  }
  expect_call(sem_wait(&left->taken), "sem_wait");
  if (me.dice.once_in(2)) sleep_until(left->ends + kMillisecond);
  const Time began = now();
  const int error = pthread_mutex_lock(&left->mutex.mutex);
  expect(error == EOWNERDEAD, "a mutex whose owner has ended", error, EOWNERDEAD);
  expect_elapsed(began, std::max<Time>(left->ends - began, 0), "a mutex whose owner ends", 200 * kMicrosecond);
  const bool mends = me.dice.once_in(2);
  if (mends) expect(pthread_mutex_consistent(&left->mutex.mutex) == 0, "pthread_mutex_consistent");
  pthread_mutex_unlock(&left->mutex.mutex);
  const int then = pthread_mutex_lock(&left->mutex.mutex);
  expect(then == (mends ? 0 : ENOTRECOVERABLE), "a robust mutex, then", then);
  if (then == 0) pthread_mutex_unlock(&left->mutex.mutex);
  if (child < 0) pthread_join(thread, nullptr);
  if (child > 0) expect(waitpid(child, nullptr, 0) == child, "waitpid", errno);
}

// A barrier with a child.
void count_down_together() {
  struct Meeting {
    pthread_barrier_t barrier;
    std::atomic<Time> last;
    std::atomic<int> serial;
  };
  SharedPage<Meeting> meeting;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&meeting->barrier, &attributes, 2);
  const std::uint32_t rounds = me.dice.between(1, 4);
  const auto come = [&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      pause_a_little();
      meeting->last = std::max(meeting->last.load(), now());
      const int result = pthread_barrier_wait(&meeting->barrier);
      meeting->serial += int(result == PTHREAD_BARRIER_SERIAL_THREAD);
      expect(now() >= meeting->last - kAhead, "a barrier passed before all had come", now(), meeting->last);
      expect(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, "pthread_barrier_wait", result);
      pthread_barrier_wait(&meeting->barrier);
    }
  };
  const pid_t child = fork();
  expect_call(child, "fork");
  me.dice.bits();
  if (child == 0) {
    me.is_child = true;
    me.dice = Dice(me.dice.bits());
    come();
    _exit(0);
  }
  come();
  int status = 0;
  expect(waitpid(child, &status, 0) == child && status == 0, "a child at a barrier", status);
  expect(meeting->serial == int(rounds), "who is told to be the last at a barrier", meeting->serial, rounds);
}

void rush(Dice common) {
  Mutex& mutex = locks->mutexes[common.below(std::size(locks->mutexes))];
  const std::uint32_t what = common.below(6);
  for (std::uint32_t times = common.between(2, 6); times > 0; --times) {
    switch (what) {
      case 0: lock_for_reading_or_writing(); break;
      case 1: take_a_permit(); break;
      case 2: pass_through_queue(); break;
      default: hold(mutex);
    }
  }
}

void meet() {
  locks->arrived = std::max(locks->arrived.load(), now());
  const int result = pthread_barrier_wait(&locks->all);
  expect(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, "pthread_barrier_wait", result);
  expect(now() >= locks->arrived - kAhead, "a barrier passed before all had come", now(), locks->arrived);
  pthread_barrier_wait(&locks->all);
}

}  // namespace walk

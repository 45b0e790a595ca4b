// SPDX-License-Identifier: Apache-2.0
// Ways of letting time pass: each must last as long as requested, and at most kSlack longer.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <iterator>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

void expect_error(int error, int wanted, const char* call) { expect(error == wanted, call, error, wanted); }
void expect_timeout(int result, const char* call) {
  expect(result == -1 && errno == ETIMEDOUT, call, result == -1 ? errno : 0, ETIMEDOUT);
}

// --- Sleeps.

void by_nanosleep(Time length) {
  const timespec request = to_timespec(length);
  expect_call(nanosleep(&request, nullptr), "nanosleep");
}
void by_usleep(Time length) { expect_call(usleep(useconds_t(length / kMicrosecond)), "usleep"); }
void by_clock_nanosleep(Time length) {
  const timespec request = to_timespec(length);
  expect_error(clock_nanosleep(CLOCK_MONOTONIC, 0, &request, nullptr), 0, "clock_nanosleep");
}
void by_deadline(Time length) {
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const timespec deadline = on_clock(clock, now() + length);
  expect_error(clock_nanosleep(clock, TIMER_ABSTIME, &deadline, nullptr), 0, "clock_nanosleep until");
}
void by_raw_nanosleep(Time length) {
  const timespec request = to_timespec(length);
  expect_call(syscall(SYS_nanosleep, &request, nullptr), "nanosleep by number");
}

// --- Descriptors that do not become ready.

void by_poll(Time length) { expect(poll(nullptr, 0, int(length / kMillisecond)) == 0, "poll"); }
void by_ppoll(Time length) {
  const timespec timeout = to_timespec(length);
  pollfd nothing{eventfd(0, EFD_CLOEXEC), POLLIN, 0};
  expect(ppoll(&nothing, 1, &timeout, nullptr) == 0, "ppoll");
  close(nothing.fd);
}
void by_select(Time length) {
  timeval timeout{length / 1'000'000'000, length / 1'000 % 1'000'000};
  expect(select(0, nullptr, nullptr, nullptr, &timeout) == 0, "select");
}
void by_pselect(Time length) {
  const timespec timeout = to_timespec(length);
  expect(pselect(0, nullptr, nullptr, nullptr, &timeout, nullptr) == 0, "pselect");
}
void by_epoll(Time length) {
  const int set = epoll_create1(0);
  epoll_event event{};
  expect(epoll_wait(set, &event, 1, int(length / kMillisecond)) == 0, "epoll_wait");
  close(set);
}
// The kernel counts these timeouts in jiffies.
void by_receive_timeout(Time length) {
  int ends[2];
  expect_call(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
  const timeval timeout{length / 1'000'000'000, length / 1'000 % 1'000'000};
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  char byte;
  expect(recv(ends[0], &byte, 1, 0) == -1 && errno == EAGAIN, "recv with SO_RCVTIMEO", errno, EAGAIN);
  close(ends[0]);
  close(ends[1]);
}

// --- Locks that no thread releases.

void by_semaphore(Time length) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const timespec deadline = on_clock(clock, now() + length);
  const int result =
      clock == CLOCK_REALTIME ? sem_timedwait(&semaphore, &deadline) : sem_clockwait(&semaphore, clock, &deadline);
  expect_timeout(result, "sem_timedwait");
  sem_destroy(&semaphore);
}
void by_condition(Time length) {
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, clock);
  pthread_cond_t condition;
  pthread_cond_init(&condition, &attributes);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const timespec deadline = on_clock(clock, now() + length);
  int error;
  do
    error = me.dice.once_in(2) ? pthread_cond_clockwait(&condition, &mutex, clock, &deadline)
                               : pthread_cond_timedwait(&condition, &mutex, &deadline);
  while (error == 0);  // spurious wake-up
  expect_error(error, ETIMEDOUT, "pthread_cond_timedwait");
  pthread_mutex_unlock(&mutex);
  pthread_cond_destroy(&condition);
}
void by_mutex(Time length) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const timespec deadline = on_clock(clock, now() + length);
  const int error = clock == CLOCK_REALTIME ? pthread_mutex_timedlock(&mutex, &deadline)
                                            : pthread_mutex_clocklock(&mutex, clock, &deadline);
  expect_error(error, ETIMEDOUT, "pthread_mutex_timedlock");
  pthread_mutex_unlock(&mutex);
}
void by_rwlock(Time length) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_rdlock(&lock);
  const timespec deadline = on_clock(CLOCK_REALTIME, now() + length);
  expect_error(pthread_rwlock_timedwrlock(&lock, &deadline), ETIMEDOUT, "pthread_rwlock_timedwrlock");
  pthread_rwlock_unlock(&lock);
}
void by_futex(Time length) {
  const Time began = now();
  std::uint32_t word = 7;
  const int kind = me.dice.once_in(2) ? FUTEX_PRIVATE_FLAG : 0;
  const timespec timeout = to_timespec(length);
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT | kind, 7, &timeout, nullptr, 0);
  // A spurious wake-up is allowed: the end of a thread with a robust mutex wakes all waiters.
  if (result == 0) return sleep_until(began + length);
  expect_timeout(int(result), "FUTEX_WAIT");
  expect(syscall(SYS_futex, &word, FUTEX_WAIT | kind, 8, &timeout, nullptr, 0) == -1 && errno == EAGAIN,
         "FUTEX_WAIT for another value");
}
void by_futex_deadline(Time length) {
  std::uint32_t word = 7;
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const int kind = (me.dice.once_in(2) ? FUTEX_PRIVATE_FLAG : 0) | (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
  const timespec deadline = on_clock(clock, now() + length);
  long result;
  do result = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | kind, 7, &deadline, nullptr, 1);
  while (result == 0);
  expect_timeout(int(result), "FUTEX_WAIT_BITSET");
}

// --- Signals and timers.

void by_sigtimedwait(Time length) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMAX);  // no process sends SIGRTMAX
  const timespec timeout = to_timespec(length);
  expect(sigtimedwait(&set, nullptr, &timeout) == -1 && errno == EAGAIN, "sigtimedwait", errno, EAGAIN);
}
void by_timerfd(Time length) {
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const bool absolute = me.dice.once_in(2);
  const int timer = timerfd_create(clock, 0);
  const Time deadline = now() + length;
  const itimerspec once{{}, absolute ? on_clock(clock, deadline) : to_timespec(length)};
  expect_call(timerfd_settime(timer, absolute ? TFD_TIMER_ABSTIME : 0, &once, nullptr), "timerfd_settime");
  int watch = -1;
  if (me.dice.once_in(2) && !is_on_a_real_host())
    expect(!await_readable(timer, &watch, deadline - length / 2), "a timer came too early");
  std::uint64_t ends = 0;
  expect_call(read(timer, &ends, sizeof ends), "read of a timer");
  expect(ends == 1, "ends of a timer that goes off once", long(ends), 1);
  close(timer);
  if (watch >= 0) close(watch);
}
// Three periods of the timer.
void by_periodic_timerfd(Time length) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const itimerspec each{to_timespec(length / 3), to_timespec(length / 3)};
  expect_call(timerfd_settime(timer, 0, &each, nullptr), "timerfd_settime");
  int watch = -1;
  for (std::uint64_t all = 0, ends; all < 3; all += ends) {
    expect(await_readable(timer, &watch, kNever), "a timer does not go off");
    expect_call(read(timer, &ends, sizeof ends), "read of a timer");
    if (me.dice.once_in(3)) pause_a_little();
  }
  close(timer);
  if (watch >= 0) close(watch);
}
void by_posix_timer(Time length) {
  const int number = SIGRTMIN + 8 + int(me.worker);
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  sigevent event{};
  event.sigev_signo = number;
  event.sigev_value.sival_int = int(length);
  event.sigev_notify = SIGEV_SIGNAL;
  if (me.dice.once_in(2)) {
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = gettid();
  }
  timer_t timer;
  expect_call(timer_create(clock, &event, &timer), "timer_create");
  const itimerspec once{{}, to_timespec(length)};
  expect_call(timer_settime(timer, 0, &once, nullptr), "timer_settime");
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  siginfo_t info{};
  const int came = sigwaitinfo(&set, &info);
  expect(came == number && info.si_value.sival_int == int(length) && info.si_code == SI_TIMER, "a timer's signal", came,
         number);
  itimerspec left{};
  timer_gettime(timer, &left);
  expect(left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0, "a timer that has gone off has time left");
  expect_call(timer_delete(timer), "timer_delete");
}
volatile sig_atomic_t alarms = 0;
void by_itimer(Time length) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { alarms = alarms + 1; };
  sigaction(SIGALRM, &action, &before);
  alarms = 0;
  sigset_t alarm, mask, open;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, &mask);
  const itimerval once{{}, {length / 1'000'000'000, length / 1'000 % 1'000'000}};
  expect_call(setitimer(ITIMER_REAL, &once, nullptr), "setitimer");
  open = mask;
  sigdelset(&open, SIGALRM);
  while (alarms == 0) sigsuspend(&open);
  expect(alarms == 1, "alarms", alarms, 1);
}

// --- Other ways.

void by_clock(Time length) {
  const clockid_t clock = me.dice.once_in(2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const Time end = now(clock) + length;
  for (Time last = 0, seen = 0; last < end; last = seen) {
    seen = now(clock);
    expect(seen >= last, "a clock that goes back", seen, last);
  }
}
void by_counter(Time length) {
  if (is_on_a_real_host()) return by_clock(length);
  const std::uint64_t end = __builtin_ia32_rdtsc() + std::uint64_t(length);  // one count is one nanosecond
  for (std::uint64_t last = 0, seen = 0; last < end; last = seen) {
    seen = __builtin_ia32_rdtsc();
    expect(seen >= last, "a counter that goes back", long(seen), long(last));
  }
}
void by_yielding(Time length) {
  for (const Time end = now() + length; now() < end;) sched_yield();
}
void by_thread(Time length) {
  pthread_t thread;
  const auto sleep = [](void* nanoseconds) -> void* {
    const timespec request = to_timespec(Time(nanoseconds));
    nanosleep(&request, nullptr);
    return nanoseconds;
  };
  expect(pthread_create(&thread, nullptr, sleep, reinterpret_cast<void*>(length)) == 0, "pthread_create");
  void* result = nullptr;
  if (me.dice.once_in(2) && !is_on_a_real_host()) {
    const timespec early = on_clock(CLOCK_REALTIME, now() + length / 2);
    const Time began = now();
    expect_error(pthread_timedjoin_np(thread, &result, &early), ETIMEDOUT, "pthread_timedjoin_np");
    expect_elapsed(began, length / 2 - kMicrosecond, "pthread_timedjoin_np");
  }
  expect_error(pthread_join(thread, &result), 0, "pthread_join");
  expect(Time(result) == length, "a thread's result");
}

constexpr Wait kWaits[] = {
    {"nanosleep", by_nanosleep, 1, false},
    {"usleep", by_usleep, kMicrosecond, false},
    {"clock_nanosleep", by_clock_nanosleep, 1, false},
    {"clock_nanosleep until", by_deadline, 1, false},
    {"nanosleep by number", by_raw_nanosleep, 1, false},
    {"poll", by_poll, kMillisecond, false},
    {"ppoll", by_ppoll, 1, false},
    {"select", by_select, kMicrosecond, false},
    {"pselect", by_pselect, 1, false},
    {"epoll_wait", by_epoll, kMillisecond, false},
    {"SO_RCVTIMEO", by_receive_timeout, kMillisecond, false, 10 * kMillisecond},
    {"sem_timedwait", by_semaphore, 1, false},
    {"pthread_cond_timedwait", by_condition, 1, false},
    {"pthread_mutex_timedlock", by_mutex, 1, false},
    {"pthread_rwlock_timedwrlock", by_rwlock, 1, false},
    {"FUTEX_WAIT", by_futex, 1, false},
    {"FUTEX_WAIT_BITSET", by_futex_deadline, 1, false},
    {"sigtimedwait", by_sigtimedwait, 1, false},
    {"timerfd", by_timerfd, 1, false},
    {"timerfd of a period", by_periodic_timerfd, 3, false},
    {"timer_create", by_posix_timer, 1, false},
    {"setitimer", by_itimer, kMicrosecond, true},
    {"the clock read until", by_clock, 1, false},
    {"the counter read until", by_counter, 1, false},
    {"sched_yield until", by_yielding, 1, false},
    {"pthread_join", by_thread, 1, false},
};

}  // namespace

std::size_t wait_count() { return std::size(kWaits); }
const Wait& wait_number(std::size_t number) { return kWaits[number]; }

// A timeout that is no multiple of the call's unit (us or ms) needs a finer call.
bool await_readable(int fd, int* watch, Time deadline) {
  const Time began = now();
  if (deadline <= began) deadline = began;
  const bool forever = deadline == kNever;
  const timespec left = to_timespec(forever ? 0 : deadline - began);
  const int milliseconds = forever ? -1 : int((deadline - began) / kMillisecond);
  const bool is_whole = forever || (deadline - began) % kMillisecond == 0;
  pollfd wanted{fd, POLLIN, 0};
  int ready = 0;
  switch (me.dice.below(6)) {
    case 3:  // polls repeatedly, then waits
      for (int looks = 0; looks < 200 && ready == 0 && now() < deadline; ++looks) ready = poll(&wanted, 1, 0);
      return ready == 1 || await_readable(fd, watch, deadline);
    case 0: {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(fd, &set);
      ready = pselect(fd + 1, &set, nullptr, nullptr, forever ? nullptr : &left, nullptr);
      expect(ready != 1 || FD_ISSET(fd, &set), "select says one and does not say which");
      break;
    }
    case 1:
      if (!is_whole && milliseconds == 0) return await_readable(fd, watch, deadline);
      ready = poll(&wanted, 1, milliseconds);
      if (ready == 0 && !is_whole) return await_readable(fd, watch, deadline);
      break;
    case 2: {
      if (*watch < 0) {
        *watch = epoll_create1(EPOLL_CLOEXEC);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        expect_call(epoll_ctl(*watch, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
      }
      if (!is_whole && milliseconds == 0) return await_readable(fd, watch, deadline);
      epoll_event event{};
      ready = epoll_wait(*watch, &event, 1, milliseconds);
      expect(ready != 1 || event.data.fd == fd, "epoll tells of another", event.data.fd, fd);
      if (ready == 0 && !is_whole) return await_readable(fd, watch, deadline);
      break;
    }
    default: ready = ppoll(&wanted, 1, forever ? nullptr : &left, nullptr);
  }
  expect_call(ready, "a wait for a descriptor");
  if (ready == 0) {
    expect(!forever, "a wait without an end ended");
    expect_elapsed(began, deadline - began, "a wait for a descriptor");
  }
  return ready != 0;
}

}  // namespace walk

// SPDX-License-Identifier: Apache-2.0
// Signals and timers in simulated time. Each output line shows a result and the time in milliseconds.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec start;

static int now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}
static void tell(const char* what, int number) {
  printf("%s %d at %d\n", what, number, now_ms());
  fflush(stdout);
}

static volatile sig_atomic_t last, sender_is_parent, count;
static void note(int signal, siginfo_t* info, void* context) {
  (void)context;
  last = signal;
  sender_is_parent = info->si_pid == getppid();
  ++count;
}
static void handle(int signal, int flags) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | flags};
  action.sa_sigaction = note;
  sigaction(signal, &action, NULL);
}

static void to_a_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    handle(SIGUSR1, 0);
    const int slept = usleep(900000);
    tell(slept != 0 && errno == EINTR && sender_is_parent ? "child heard" : "child missed", last);
    pause();
    _exit(1);
  }
  usleep(20000);
  kill(child, SIGUSR1);
  usleep(20000);
  kill(child, SIGTERM);
  int status;
  waitpid(child, &status, 0);
  tell("child ended by", WTERMSIG(status));
  tell("nobody there", kill(child, 0) == -1 && errno == ESRCH);
}

// Children in their own process group. A grandchild ignores SIGTERM and is killed alone.
static void to_a_group(void) {
  int numbers[2];
  if (pipe(numbers) != 0) exit(2);
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    for (int i = 0; i < 2; ++i)
      if (fork() == 0) {
        sleep(5);
        _exit(0);
      }
    const pid_t ignoring = fork();
    if (ignoring == 0) {
      signal(SIGTERM, SIG_IGN);
      sleep(5);
      _exit(0);
    }
    if (write(numbers[1], &ignoring, sizeof ignoring) != sizeof ignoring) exit(2);
    signal(SIGTERM, SIG_IGN);
    int status, ended = 0;
    for (int i = 0; i < 3; ++i) {
      while (wait(&status) < 0) continue;
      ended += WTERMSIG(status);
    }
    tell("of the group", ended);
    _exit(0);
  }
  pid_t ignoring;
  if (read(numbers[0], &ignoring, sizeof ignoring) != sizeof ignoring) exit(2);
  usleep(10000);
  killpg(leader, SIGTERM);
  usleep(10000);
  kill(ignoring, SIGKILL);
  waitpid(leader, NULL, 0);
  tell("group", 0);
}

static void* interrupted(void* unused) {
  (void)unused;
  const int slept = usleep(900000);
  tell(slept != 0 ? "thread heard" : "thread missed", last);
  return NULL;
}
static void* awaiting(void* set) {
  for (int i = 0; i < 3; ++i) {
    siginfo_t info;
    const int signal = sigwaitinfo(set, &info);
    tell("awaited", signal * 100 + info.si_value.sival_int);
  }
  const struct timespec limit = {0, 7000000};
  tell("awaited in vain", sigtimedwait(set, NULL, &limit) == -1 && errno == EAGAIN);
  return NULL;
}
static void to_threads(void) {
  handle(SIGUSR2, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, interrupted, NULL);
  usleep(5000);
  pthread_kill(thread, SIGUSR2);
  pthread_join(thread, NULL);

  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_create(&thread, NULL, awaiting, &set);
  usleep(5000);
  for (int i = 1; i <= 2; ++i) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
  usleep(5000);
  kill(getpid(), SIGUSR1);
  pthread_join(thread, NULL);

  // A pending signal is delivered once, when it is unblocked.
  handle(SIGUSR1, 0);
  kill(getpid(), SIGUSR1);
  raise(SIGUSR1);
  sigset_t waits;
  sigpending(&waits);
  tell("waits", sigismember(&waits, SIGUSR1));
  count = 0;
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  tell("let through", count);
}

static void by_timers(void) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0), events = epoll_create1(0);
  const struct itimerspec each = {{0, 3000000}, {0, 10000000}};
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(events, EPOLL_CTL_ADD, timer, &event);
  timerfd_settime(timer, 0, &each, NULL);
  uint64_t ends;
  for (int i = 0; i < 3; ++i) {
    epoll_wait(events, &event, 1, -1);
    if (read(timer, &ends, sizeof ends) != sizeof ends) exit(2);
    tell("ends", (int)ends);
    usleep(4000);
  }
  struct itimerspec left;
  timerfd_gettime(timer, &left);
  tell("left", (int)(left.it_value.tv_nsec / 1000000 * 1000 + left.it_interval.tv_nsec / 1000000));
  close(timer);

  handle(SIGRTMIN, SA_RESTART);
  struct sigevent to = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  timer_t posix;
  timer_create(CLOCK_REALTIME, &to, &posix);
  const struct itimerspec soon = {{0, 2000000}, {0, 5000000}};
  timer_settime(posix, 0, &soon, NULL);
  count = 0;
  while (count < 3) pause();
  tell("posix", last == SIGRTMIN);
  timer_delete(posix);
  usleep(20000);
  tell("deleted", count);
}

// A blocked signal must not block the simulator's own signals: a handler reads the counter with all signals blocked.
static volatile unsigned long counter;
static void read_counter(int signal) {
  counter = __builtin_ia32_rdtsc();
  last = signal;
}
static void held_back(void) {
  const struct itimerval soon = {{0, 0}, {0, 4000}};
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  signal(SIGALRM, read_counter);
  setitimer(ITIMER_REAL, &soon, NULL);
  sigsuspend(&all);
  tell("counter read", counter != 0);
}

int main(void) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  to_a_child();
  to_a_group();
  to_threads();
  by_timers();
  held_back();
  return 0;
}

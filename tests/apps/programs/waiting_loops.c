// SPDX-License-Identifier: Apache-2.0
// One loop that sometimes waits for memory and sometimes runs through. The simulator watches the loop while it waits,
// and must let it pass otherwise. The loop is left by its condition, by siglongjmp() from a signal handler, and in a
// child; the program has its own breakpoints, too.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kWaits = 60, kBytes = 3000 };

static volatile char *flag;  // shared by all processes
static char bytes[kBytes];
static sigjmp_buf alarm_left;
static volatile sig_atomic_t own_breakpoints;

__attribute__((noinline)) static const volatile char *follow(const volatile char *at, int step) {
  while (*at == 0) at += step;
  return at;
}

static void on_trap(int signal) { own_breakpoints += signal == SIGTRAP; }
static void on_alarm(int signal) { siglongjmp(alarm_left, signal); }

static void *raise_flags(void *unused) {
  for (int i = 0; i < kWaits; ++i) {
    usleep(20 + 3 * (i % 7));
    *flag = 1;
    while (*flag != 0) {}
  }
  return unused;
}

static int scan(void) { return (int)(follow(bytes, 1) - bytes); }

static long waited_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  static long before;
  const long us = now.tv_sec * 1000000L + now.tv_nsec / 1000, waited = us - before;
  before = us;
  return waited;
}

static void in_turns(void) {
  pthread_t other;
  pthread_create(&other, NULL, raise_flags, NULL);
  long sum = 0;
  for (int i = 0; i < kWaits; ++i) {
    follow(flag, 0);
    *flag = 0;
    if (i % 3 == 0) sum += scan();
#if defined __x86_64__
    if (i % 10 == 0) __asm__ volatile("int3");
#else
    if (i % 10 == 0) raise(SIGTRAP);
#endif
  }
  pthread_join(other, NULL);
  printf("scanned %ld, breakpoints %d, after %ld us\n", sum, (int)own_breakpoints, waited_us());
}

static void left_by_a_signal(void) {
  const struct itimerval soon = {.it_value = {0, 250}};
  if (sigsetjmp(alarm_left, 1) == 0) {
    setitimer(ITIMER_REAL, &soon, NULL);
    follow(flag, 0);
  }
  printf("left after %ld us, scanned %d\n", waited_us(), scan());
}

static void in_a_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    const int scanned = scan();
    follow(flag, 0);
    _exit(scanned == kBytes - 1 ? 7 : 8);
  }
  usleep(40);
  *flag = 1;
  int status;
  waitpid(child, &status, 0);
  printf("child %d after %ld us\n", WEXITSTATUS(status), waited_us());
}

int main(void) {
  flag = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  bytes[kBytes - 1] = 1;
  signal(SIGTRAP, on_trap);
  signal(SIGALRM, on_alarm);
  waited_us();
  in_turns();
  left_by_a_signal();
  in_turns();
  in_a_child();
}

// SPDX-License-Identifier: Apache-2.0
// Prints the CPU times that a process can query, in milliseconds.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long rounded(double ms) { return (long)(ms + 0.5); }
static long on(clockid_t id) {
  struct timespec time = {-1, 0};
  if (clock_gettime(id, &time) != 0) return -1;
  return rounded(time.tv_sec * 1e3 + time.tv_nsec / 1e6);
}
static long used(const struct rusage *usage) {
  return rounded((usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e3 +
                 (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3);
}
static long usage_of(int who) {
  struct rusage usage;
  return getrusage(who, &usage) == 0 ? used(&usage) : -1;
}

static long nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000 + time.tv_nsec;
}
static void burn(long ms) {
  const long end = nanoseconds() + ms * 1000000;
  while (nanoseconds() < end) continue;
}

static void tell(const char *after) {
  struct tms ticks;
  times(&ticks);
  clockid_t own, threads;
  clock_getcpuclockid(getpid(), &own);
  pthread_getcpuclockid(pthread_self(), &threads);
  printf("%s: process %ld %ld %ld %ld %ld, thread %ld %ld %ld, children %ld %ld\n", after,
         on(CLOCK_PROCESS_CPUTIME_ID), on(own), usage_of(RUSAGE_SELF), rounded(clock() * 1e3 / CLOCKS_PER_SEC),
         (long)(ticks.tms_utime + ticks.tms_stime) * 10, on(CLOCK_THREAD_CPUTIME_ID), on(threads),
         usage_of(RUSAGE_THREAD), usage_of(RUSAGE_CHILDREN), (long)(ticks.tms_cutime + ticks.tms_cstime) * 10);
}

static void *work(void *ms) {
  usleep(30000);
  burn(*(long *)ms);
  usleep(30000);
  return NULL;
}

/* --- CPU time of threads that spin, of ended threads, of other processes, and of stopped processes. */

static volatile int go;
static void *spin(void *unused) {
  while (!go) continue;
  return unused;
}

static void others(void) {
  pthread_t thread;
  clockid_t of_thread, of_child;
  pthread_create(&thread, NULL, spin, NULL);
  pthread_getcpuclockid(thread, &of_thread);
  usleep(30000);
  printf("spinning: %ld, its process %ld\n", on(of_thread), usage_of(RUSAGE_SELF));
  go = 1;
  pthread_join(thread, NULL);
  printf("ended: %ld, its process %ld; no clock %ld\n", on(of_thread), usage_of(RUSAGE_SELF), on(12345));

  const pid_t child = fork();
  if (child == 0) {
    burn(20);
    raise(SIGSTOP);
    burn(10);
    usleep(10000);
    _exit(0);
  }
  struct rusage usage;
  int status;
  wait4(child, &status, WUNTRACED, &usage);
  usleep(50000);
  clock_getcpuclockid(child, &of_child);
  printf("stopped: %ld %ld\n", used(&usage), on(of_child));
  kill(child, SIGCONT);
  usleep(15000);
  printf("going on: %ld\n", on(of_child));
  wait4(child, &status, 0, &usage);
  printf("the child: %ld, children %ld; none %ld %d\n", used(&usage), usage_of(RUSAGE_CHILDREN), on(of_child),
         clock_getcpuclockid(child, &of_child) == ESRCH);

  signal(SIGCHLD, SIG_IGN);
  if (fork() == 0) {
    burn(20);
    _exit(0);
  }
  printf("nobody's: %d, children %ld\n", wait(NULL), usage_of(RUSAGE_CHILDREN));
}

/* A timer on a clock ID that names a thread. */
static void set_timer(void) {
  clockid_t own;
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_NONE};
  pthread_getcpuclockid(pthread_self(), &own);
  printf("timer %d\n", timer_create(own, &event, &timer));
}

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count > 1 && strcmp(arguments[1], "timer") == 0) {
    set_timer();
    return 0;
  }
  if (count > 1 && strcmp(arguments[1], "others") == 0) {
    others();
    return 0;
  }
  if (count > 1) {
    tell("after exec");
    return 0;
  }
  usleep(50000);
  tell("asleep");
  burn(20);
  tell("busy");
  pthread_t threads[2];
  long ms[2] = {10, 30};
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, &ms[i]);
  usleep(80000);
  clockid_t of_second;
  pthread_getcpuclockid(threads[1], &of_second);
  printf("the second thread: %ld\n", on(of_second));
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  tell("threads");
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      burn(40);
      _exit(0);
    }
    wait(NULL);
    burn(20);
    execl(arguments[0], arguments[0], "again", NULL);
    _exit(1);
  }
  struct rusage usage;
  memset(&usage, 1, sizeof usage);
  wait4(child, NULL, 0, &usage);
  printf("the child: %ld, of faults %ld\n", used(&usage), usage.ru_minflt);
  tell("a child");
  return 0;
}

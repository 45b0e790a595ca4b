// SPDX-License-Identifier: Apache-2.0
/* Children made with clone(2): flags that act as fork work, with own clock and end; other flags are refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static int changed;
static pid_t told_child, told_self;

static long microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
static int sleeps(void *times) {
  char here;
  const long start = microseconds();
  for (int i = 0; i < *(int *)times; ++i) usleep(100);
  const int on_stack = &here >= stack && &here < stack + sizeof stack;
  changed = 1;
  const long slept = (microseconds() - start) / 100 * 100;
  printf("child %d: stack %d, self %d, %ld us\n", getpid(), on_stack, told_self == getpid(), slept);
  return 7;
}
static void ends(const char *what, pid_t child) {
  int status = -1;
  const long start = microseconds();
  const pid_t ended = waitpid(child, &status, 0);
  const long waited = (microseconds() - start) / 100 * 100;
  printf("%s: %d, status %d, changed %d, after %ld us\n", what, child > 0 && ended == child, WEXITSTATUS(status),
         changed, waited);
}
static void refused(const char *what, long result) {
  if (result == 0) _exit(9);
  printf("%s: %ld %s\n", what, result, strerror(errno));
}

int main(void) {
  int times = 20;
  setvbuf(stdout, NULL, _IOLBF, 0);
  pid_t child = clone(sleeps, stack + sizeof stack, SIGCHLD, &times);
  usleep(500);
  ends("own stack", child);
  child = clone(sleeps, stack + sizeof stack, SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID, &times, &told_child,
                NULL, &told_self);
  printf("told %d\n", told_child == child);
  ends("with numbers", child);
  child = clone(sleeps, stack + sizeof stack, SIGCHLD | CLONE_VM | CLONE_VFORK, &times);
  ends("as vfork", child);
  child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) {
    usleep(3000);
    _exit(5);
  }
  ends("by number", child);
  refused("shares memory", clone(sleeps, stack + sizeof stack, CLONE_VM | SIGCHLD, &times));
  refused("shares files", clone(sleeps, stack + sizeof stack, CLONE_FILES | SIGCHLD, &times));
  refused("without a signal", clone(sleeps, stack + sizeof stack, 0, &times));
  refused("without a stack", clone(sleeps, NULL, SIGCHLD, &times));
  refused("a name space", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
  refused("a stack by number", syscall(SYS_clone, SIGCHLD, stack + sizeof stack, NULL, NULL, NULL));
  struct clone_args arguments = {.exit_signal = SIGCHLD};
  refused("clone3", syscall(SYS_clone3, &arguments, sizeof arguments));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Forks that the C library makes itself (all kinds), and calls that change signal masks by older names. */
#define _GNU_SOURCE
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  printf("%s: %s\n", what, strerror(errno));
  exit(1);
}
static long milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + (time.tv_nsec + 500000) / 1000000;
}

static void terminal(void) {
  int master, status;
  char text[100];
  const long start = milliseconds();
  const pid_t child = forkpty(&master, NULL, NULL, NULL);
  if (child == 0) {
    usleep(20000);
    printf("a terminal: %d %d\n", isatty(0), getsid(0) == getpid());
    _exit(2);
  }
  const ssize_t got = read(master, text, sizeof text - 1);
  if (got <= 0) fail("read");
  text[strcspn(text, "\r\n")] = 0;
  const int right = waitpid(child, &status, 0) == child;
  printf("%s; ended %d %d after %ld ms\n", text, right, WEXITSTATUS(status), milliseconds() - start);
}

static void in_background(void) {
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  if (fork() == 0) {
    close(ends[0]);
    if (daemon(0, 0) != 0) _exit(1);
    usleep(50000);
    char folder[100], text[200];
    const int length = snprintf(text, sizeof text, "in %s, parent %d", getcwd(folder, sizeof folder), getppid());
    _exit(write(ends[1], text, (size_t)length) != length);
  }
  close(ends[1]);
  char text[200] = "";
  int status;
  const long start = milliseconds();
  wait(&status);
  const long ended = milliseconds() - start;
  if (read(ends[0], text, sizeof text - 1) <= 0) fail("read");
  printf("%d after %ld ms; %s after %ld ms\n", status, ended, text, milliseconds() - start);
}

static void plain(void) {
  int status;
  const pid_t child = _Fork();
  if (child == 0) {
    usleep(3000);
    _exit(5);
  }
  const long start = milliseconds();
  printf("_Fork: %d", waitpid(child, &status, 0) == child);
  printf(" %d after %ld ms\n", WEXITSTATUS(status), milliseconds() - start);
}

static volatile sig_atomic_t heard;
static void hear(int signal) { heard += signal == SIGUSR1; }

static void masks(void) {
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  sigset(SIGUSR1, hear);
  sighold(SIGUSR1);
  raise(SIGUSR1);
  printf("held %d", heard);
  sigrelse(SIGUSR1);
  printf(", then %d; ", heard);
  sigsetmask(1 << (SIGUSR1 - 1));
  raise(SIGUSR1);
  printf("blocked %d", heard);
  sigsetmask(0);
  printf(", then %d; ", heard);
  printf("held %d", sigset(SIGUSR1, SIG_HOLD) == hear);
  printf(", then not %d\n", sigset(SIGUSR1, hear) == SIG_HOLD);
}

/* As on Linux, select() updates the timeout; a loop waits until the time has passed. */
static void rounds(void) {
  fd_set none;
  FD_ZERO(&none);
  struct timeval left = {0, 20000};
  int count = 0;
  for (; (left.tv_sec != 0 || left.tv_usec != 0) && count < 10; ++count) select(0, &none, NULL, NULL, &left);
  printf("select: %d\n", count);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  terminal();
  in_background();
  plain();
  masks();
  rounds();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Sends signals to itself and to a child.
//
//   signals HOW
//
// The child sleeps, in its own process group, and ends. Exit status: the signal that ended the child early, or 0; 2: an
// error.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static volatile sig_atomic_t received;

static void check(int right, const char* what) {
  if (right) return;
  printf("wrong: %s: %s\n", what, strerror(errno));
  _exit(2);
}

static void count(int signal) {
  (void)signal;
  ++received;
}

static void kill_child(int signal) {
  (void)signal;
  check(kill(child, SIGTERM) == 0, "kill");
}

static int is(const char* how, const char* name) { return strcmp(how, name) == 0; }

static int signal_self(void) {
  signal(SIGUSR1, count);
  // The simulator and other processes of the machine must not get the signals.
  check(kill(-1, SIGTERM) == -1 && errno == EPERM, "to all");
  check(kill(getppid(), SIGTERM) == -1 && errno == EPERM, "to init");
  check(kill(getpid() + 100, SIGTERM) == -1 && errno == ESRCH, "to nobody known");
  check(raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0, "to itself");
  const union sigval value = {0};
  check(sigqueue(getpid(), SIGUSR1, value) == 0, "queued to itself");
  return received == 3 ? 0 : 2;
}

static void start_child(void) {
  child = fork();
  check(child >= 0, "fork");
  if (child != 0) return;
  setpgid(0, 0);
  sleep(5);
  _exit(0);
}

static void end_child(const char* how) {
  const union sigval value = {0};
  if (is(how, "kill")) check(kill(child, SIGTERM) == 0, how);
  if (is(how, "killpg")) check(killpg(child, SIGKILL) == 0, how);
  if (is(how, "sigqueue")) check(sigqueue(child, SIGINT, value) == 0, how);
  if (is(how, "twice")) check(kill(child, SIGCONT) == 0 && kill(child, SIGTERM) == 0, how);
  if (is(how, "handler")) {
    signal(SIGALRM, kill_child);
    alarm(1);
  }
  if (is(how, "exec")) {
    check(kill(child, SIGTERM) == 0, how);
    execlp("true", "true", (char*)NULL);
  }
}

// Signals without a receiver.
static void signal_nobody(void) {
  check(kill(child, 0) == 0, "is there a child?");
  check(kill(child, 1000) != 0 && errno == EINVAL, "no signal");
  check(killpg(-1, SIGTERM) != 0 && errno == EINVAL, "no group");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (is(how, "self")) return signal_self();
  start_child();
  usleep(10000);
  if (is(how, "nobody")) signal_nobody();
  end_child(how);
  int status;
  while (waitpid(child, &status, 0) != child) check(errno == EINTR, "waitpid");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// SPDX-License-Identifier: Apache-2.0
// Processes that are stopped and continued. Each output line shows a result and the time in milliseconds.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
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
static void tell_status(const char* what, pid_t got, int status) {
  const char* how = got == 0               ? "nothing"
                    : got < 0              ? "none"
                    : WIFSTOPPED(status)   ? "stopped"
                    : WIFCONTINUED(status) ? "goes on"
                    : WIFSIGNALED(status)  ? "killed"
                                           : "ended";
  const int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  printf("%s: %s %d at %d\n", what, how, signal, now_ms());
  fflush(stdout);
}

// Sleeps for the full time, whatever signals arrive.
static void nap(int microseconds) {
  struct timespec left = {0, microseconds * 1000};
  while (nanosleep(&left, &left) != 0) continue;
}

static volatile sig_atomic_t heard, code, status_of_child, count;
static void note(int signal, siginfo_t* info, void* context) {
  (void)context;
  heard = signal;
  code = info->si_code;
  status_of_child = info->si_status;
  ++count;
}
static void handle(int signal, int flags) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | flags};
  action.sa_sigaction = note;
  sigaction(signal, &action, NULL);
}

// Time passes for a stopped process, but its turns wait.
static void by_its_parent(void) {
  handle(SIGCHLD, SA_RESTART);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 4; ++i) {
      nap(10000);
      tell("child is at", i);
    }
    _exit(3);
  }
  int status = 0;
  nap(15000);
  kill(child, SIGSTOP);
  tell_status("asked for ends alone", waitpid(child, &status, WNOHANG), 0);
  pid_t got = waitpid(child, &status, WUNTRACED);
  tell_status("parent", got, status);
  tell("told", code == CLD_STOPPED ? status_of_child : -1);
  tell_status("once", waitpid(child, &status, WNOHANG | WUNTRACED), 0);
  nap(30000);
  kill(child, SIGTERM);
  nap(5000);
  tell_status("what was sent waits", waitpid(child, &status, WNOHANG), 0);
  kill(child, SIGSTOP);
  kill(child, SIGKILL);
  got = waitpid(child, &status, WUNTRACED);
  tell_status("parent", got, status);
}

static void let_go_on(void) {
  const pid_t child = fork();
  if (child == 0) {
    handle(SIGCONT, SA_RESTART);
    nap(5000);
    raise(SIGSTOP);
    tell("child goes on", heard);
    handle(SIGTSTP, SA_RESTART);
    count = 0;
    pause();
    tell("child caught", heard);
    signal(SIGTSTP, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGTSTP);
    tell("child held it back", heard);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    tell("child goes on again", heard);
    _exit(0);
  }
  int status;
  siginfo_t info = {0};
  waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT);
  tell("left", info.si_code == CLD_STOPPED ? info.si_status : -1);
  waitid(P_PID, (id_t)child, &info, WSTOPPED);
  tell("taken", info.si_code == CLD_STOPPED ? info.si_status : -1);
  nap(20000);
  kill(child, SIGCONT);
  pid_t got = waitpid(child, &status, WCONTINUED);
  tell_status("parent", got, status);
  nap(20000);
  tell("told", code == CLD_CONTINUED ? status_of_child : -1);
  kill(child, SIGTSTP);
  got = waitpid(child, &status, WUNTRACED);
  tell_status("parent", got, status);
  nap(20000);
  kill(child, SIGCONT);
  waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
  tell("ended, and left", info.si_code == CLD_EXITED ? info.si_status : -1);
  got = waitpid(child, &status, 0);
  tell_status("parent", got, status);
}

// A parent with SA_NOCLDSTOP.
static void unheard(void) {
  handle(SIGCHLD, SA_RESTART | SA_NOCLDSTOP);
  count = 0;
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    for (int i = 0; i < 2; ++i)
      if (fork() == 0) {
        nap(12000);
        _exit(0);
      }
    while (wait(NULL) > 0) continue;
    tell("group ended", 0);
    _exit(0);
  }
  nap(5000);
  killpg(child, SIGSTOP);
  nap(20000);
  tell("heard of", count);
  killpg(child, SIGCONT);
  int status;
  const pid_t got = waitpid(child, &status, 0);
  tell_status("parent", got, status);
  tell("heard of", count);
}

static void* busy(void* unused) {
  (void)unused;
  for (int i = 0; i < 3; ++i) nap(4000);
  tell("thread", 0);
  return NULL;
}
static void with_threads(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, 0);
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, busy, NULL);
    nap(6000);
    tell("first", 0);
    pthread_join(thread, NULL);
    _exit(0);
  }
  signal(SIGCHLD, SIG_DFL);
  nap(5000);
  kill(child, SIGSTOP);
  struct signalfd_siginfo info;
  if (read(signals, &info, sizeof info) == sizeof info) tell("read", (int)info.ssi_code * 100 + info.ssi_status);
  nap(30000);
  kill(child, SIGCONT);
  if (read(signals, &info, sizeof info) == sizeof info) tell("read", (int)info.ssi_code * 100 + info.ssi_status);
  if (read(signals, &info, sizeof info) == sizeof info) tell("read", (int)info.ssi_code * 100 + info.ssi_status);
  wait(NULL);
}

// A stopped process whose parent ends is in an orphaned process group.
static void orphaned(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(2);
  const pid_t leader = fork();
  if (leader == 0) {
    setsid();
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      count = 0;
      handle(SIGCONT, 0);
      handle(SIGHUP, 0);
      raise(SIGSTOP);
      tell("let go on", count);
      char byte = 1;
      if (write(ends[1], &byte, 1) != 1) _exit(1);
      raise(SIGTSTP);
      tell("not stopped", 0);
      _exit(0);
    }
    nap(5000);
    _exit(0);
  }
  waitpid(leader, NULL, 0);
  close(ends[1]);
  char byte;
  while (read(ends[0], &byte, 1) > 0) continue;
  tell("orphan ended", 0);
}

int main(void) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  by_its_parent();
  let_go_on();
  unheard();
  with_threads();
  orphaned();
  return 0;
}

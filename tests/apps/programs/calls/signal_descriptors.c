// SPDX-License-Identifier: Apache-2.0
// Signals read from signalfds. Each output line shows a result and the time in milliseconds.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec start;

static int now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}
static void tell(const char* what, long number) {
  printf("%s %ld at %d\n", what, number, now_ms());
  fflush(stdout);
}
static void tell_error(const char* what, long result) { tell(what, result < 0 ? -errno : result); }

static sigset_t set_of(int first, int second) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, first);
  if (second != 0) sigaddset(&set, second);
  return set;
}

static void describe(const struct signalfd_siginfo* info, pid_t sender) {
  printf("  signal %u code %d from %s user %d value %d\n", info->ssi_signo, info->ssi_code,
         info->ssi_pid == (unsigned)sender ? "it" : info->ssi_pid == (unsigned)getpid() ? "myself" : "another",
         info->ssi_uid == getuid(), info->ssi_signo == SIGCHLD ? info->ssi_status : info->ssi_int);
  fflush(stdout);
}

// As event loops do: SIGCHLD of ending children, and SIGTERM.
static void in_a_loop(void) {
  sigset_t set = set_of(SIGCHLD, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), events = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(events, EPOLL_CTL_ADD, signals, &event);
  struct signalfd_siginfo info;
  tell_error("nothing yet", read(signals, &info, sizeof info));
  const pid_t parent = getpid(), by_itself = fork();
  if (by_itself == 0) {
    usleep(5000);
    _exit(7);
  }
  const pid_t by_signal = fork();
  if (by_signal == 0) {
    usleep(10000);
    raise(SIGKILL);
  }
  const pid_t sender = fork();
  if (sender == 0) {
    usleep(15000);
    kill(parent, SIGTERM);
    usleep(5000);
    _exit(0);
  }
  for (int terms = 0, children = 0; terms == 0 || children < 3;) {
    const int ready = epoll_wait(events, &event, 1, 1000);
    tell("ready", ready);
    while (read(signals, &info, sizeof info) == sizeof info) {
      const pid_t ended = children == 0 ? by_itself : children == 1 ? by_signal : sender;
      describe(&info, info.ssi_signo == SIGTERM ? sender : ended);
      terms += info.ssi_signo == SIGTERM;
      if (info.ssi_signo == SIGCHLD)
        while (waitpid(-1, NULL, WNOHANG) > 0) ++children;
    }
  }
  close(events);
  close(signals);
}

static void several_at_once(void) {
  const int first = SIGRTMIN + 1;
  sigset_t set = set_of(first, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, 0);
  for (int i = 1; i <= 3; ++i) sigqueue(getpid(), first, (union sigval){.sival_int = i});
  kill(getpid(), SIGUSR1);
  struct pollfd wanted = {signals, POLLIN, 0};
  tell("polled", poll(&wanted, 1, 0));
  struct signalfd_siginfo info[8];
  char small[sizeof info[0] - 1];
  tell_error("too small", read(signals, small, sizeof small));
  struct iovec parts[2] = {{info, sizeof info[0] / 2}, {(char*)info + sizeof info[0] / 2, 2 * sizeof info[0]}};
  tell_error("one", readv(signals, parts, 2) / (long)sizeof info[0]);
  const long got = read(signals, info, sizeof info) / (long)sizeof info[0];
  tell_error("the rest", got);
  tell("nothing left", poll(&wanted, 1, 3));
  close(signals);
}

// Changes the mask of an existing signalfd. A signal in no mask stays pending.
static void another_mask(void) {
  sigset_t set = set_of(SIGUSR1, SIGUSR2), one = set_of(SIGUSR1, 0), other = set_of(SIGUSR2, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &one, SFD_NONBLOCK);
  kill(getpid(), SIGUSR2);
  fd_set in;
  FD_ZERO(&in);
  FD_SET(signals, &in);
  struct timeval limit = {0, 2000};
  tell("not in the set", select(signals + 1, &in, NULL, NULL, &limit));
  tell("same descriptor", signalfd(signals, &other, 0) == signals);
  struct signalfd_siginfo info;
  tell_error("in the new set", read(signals, &info, sizeof info) / (long)sizeof info);
  describe(&info, 0);
  const int copy = dup(signals);
  close(signals);
  kill(getpid(), SIGUSR2);
  tell_error("by the copy", read(copy, &info, sizeof info) / (long)sizeof info);
  close(copy);
}

// Each process reads its own signals.
static void in_a_child(void) {
  sigset_t set = set_of(SIGUSR1, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, 0);
  struct signalfd_siginfo info;
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    usleep(3000);
    kill(parent, SIGUSR1);
    struct pollfd wanted = {signals, POLLIN, 0};
    tell("child is told", poll(&wanted, 1, 4000));
    tell_error("child reads", read(signals, &info, sizeof info) / (long)sizeof info);
    describe(&info, parent);
    _exit(0);
  }
  tell_error("parent reads", read(signals, &info, sizeof info) / (long)sizeof info);
  describe(&info, child);
  usleep(5000);
  kill(child, SIGUSR1);
  waitpid(child, NULL, 0);
  tell("child ended", 0);
  // A waiting reader is killed.
  const pid_t reader = fork();
  if (reader == 0) _exit((int)read(signals, &info, sizeof info));
  usleep(3000);
  kill(reader, SIGKILL);
  int status;
  waitpid(reader, &status, 0);
  tell("reader ended by", WTERMSIG(status));
  close(signals);
}

static void* raising(void* descriptor) {
  raise(SIGUSR2);
  struct pollfd wanted = {*(int*)descriptor, POLLIN, 0};
  tell("raised in the thread", poll(&wanted, 1, 0));
  struct signalfd_siginfo info;
  tell_error("read in the thread", read(*(int*)descriptor, &info, sizeof info) / (long)sizeof info);
  return NULL;
}
static volatile sig_atomic_t handled;
static void handle(int signal) { handled = signal; }
static void interrupt(int again) {
  const struct sigaction action = {.sa_handler = handle, .sa_flags = again};
  sigaction(SIGALRM, &action, NULL);
  ualarm(2000, 0);
}
static void in_threads(void) {
  sigset_t set = set_of(SIGUSR2, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, raising, &signals);
  struct pollfd wanted = {signals, POLLIN, 0};
  tell("not the other's", poll(&wanted, 1, 3));
  pthread_join(thread, NULL);
  struct signalfd_siginfo info;
  interrupt(0);
  tell_error("interrupted", read(signals, &info, sizeof info));
  interrupt(SA_RESTART);
  if (fork() == 0) {
    usleep(5000);
    kill(getppid(), SIGUSR2);
    _exit(0);
  }
  tell_error("begun again", read(signals, &info, sizeof info) / (long)sizeof info);
  wait(NULL);
  close(signals);
}

static void misused(void) {
  sigset_t set = set_of(SIGUSR1, SIGKILL);
  sigprocmask(SIG_BLOCK, &set, NULL);
  uint64_t bits = 1u << (SIGUSR1 - 1);
  char* hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  tell_error("wrong flags", signalfd(-1, &set, 1));
  tell_error("closed", signalfd(900000, &set, 0));
  tell_error("no such kind", signalfd(1, &set, 0));
  tell_error("no mask", syscall(SYS_signalfd4, -1, hole, sizeof bits, 0));
  tell_error("long mask", syscall(SYS_signalfd4, -1, &bits, sizeof bits + 8, 0));
  const int signals = (int)syscall(SYS_signalfd, -1, &bits, sizeof bits);
  tell("by number", signals >= 0);
  kill(getpid(), SIGUSR1);
  tell_error("nowhere", read(signals, hole, 4096));
  kill(getpid(), SIGUSR1);
  struct signalfd_siginfo info;
  tell_error("again", syscall(SYS_read, signals, &info, sizeof info) / (long)sizeof info);
  tell_error("nothing is written", write(signals, &bits, sizeof bits));
  close(signals);
  int many = 0;
  for (int i = 0; i < 300; ++i) many += signalfd(-1, &set, 0) >= 0;
  tell("many", many);
  closefrom(3);
  tell("none is left", fcntl(5, F_GETFD) == -1);
}

// A new image, and a process that received the descriptor in a message, read their own signals.
static void handed_on(const char* program) {
  sigset_t set = set_of(SIGUSR1, 0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int signals = signalfd(-1, &set, SFD_NONBLOCK);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(2);
  const pid_t child = fork();
  if (child == 0) {
    dup2(signals, 20);
    kill(getpid(), SIGUSR1);
    execl(program, program, "image", NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  struct signalfd_siginfo info;
  tell_error("not the child's", read(signals, &info, sizeof info));
  close(signals);
  const pid_t maker = fork();
  char byte = 0;
  struct iovec part = {&byte, 1};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (maker == 0) {
    const int made = signalfd(-1, &set, 0);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof made);
    memcpy(CMSG_DATA(&control.header), &made, sizeof made);
    sendmsg(ends[1], &message, 0);
    usleep(3000);
    _exit(0);
  }
  recvmsg(ends[0], &message, 0);
  int got;
  memcpy(&got, CMSG_DATA(&control.header), sizeof got);
  kill(getpid(), SIGUSR1);
  tell_error("by message", read(got, &info, sizeof info) / (long)sizeof info);
  waitpid(maker, NULL, 0);
}
static void image(void) {
  struct signalfd_siginfo info;
  tell_error("image reads", read(20, &info, sizeof info) / (long)sizeof info);
  describe(&info, 0);
}

int main(int count, char** arguments) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (count > 1) {
    image();
    return 0;
  }
  in_a_loop();
  several_at_once();
  another_mask();
  in_a_child();
  in_threads();
  handed_on(arguments[0]);
  misused();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Timers that call functions, timers set by other processes, and timers after exec. Each output line shows a result and
// the time in milliseconds.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
static void tell(const char* what, long number) {
  printf("%s %ld at %d\n", what, number, now_ms());
  fflush(stdout);
}

static pthread_t first;
static volatile int calls;
static void called(union sigval value) {
  sigset_t set;
  pthread_sigmask(SIG_BLOCK, NULL, &set);
  tell("called with", value.sival_int);
  const int is_another = !pthread_equal(pthread_self(), first);
  if (calls++ == 0) tell("in a thread that blocks all", is_another && sigismember(&set, SIGUSR1));
}
static timer_t calling(int number) {
  struct sigevent to = {.sigev_notify = SIGEV_THREAD};
  to.sigev_notify_function = called;
  to.sigev_value.sival_int = number;
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &to, &timer) != 0) exit(2);
  return timer;
}
static void set(timer_t timer, int first_ms, int then_ms) {
  const struct itimerspec times = {{0, then_ms * 1000000}, {0, first_ms * 1000000}};
  timer_settime(timer, 0, &times, NULL);
}
static void functions(void) {
  first = pthread_self();
  const timer_t each = calling(1), once = calling(2), never = calling(3);
  set(each, 5, 10);
  set(once, 12, 0);
  set(never, 20, 0);
  usleep(18000);
  timer_delete(never);
  usleep(20000);
  struct itimerspec left;
  timer_gettime(each, &left);
  tell("left", left.it_value.tv_nsec / 1000000);
  timer_delete(each);
  timer_delete(once);
  usleep(20000);
  tell("calls", calls);
  // A child inherits no timers, and may create its own.
  const timer_t mine = calling(4);
  set(mine, 5, 0);
  const pid_t child = fork();
  if (child == 0) {
    calls = 0;
    usleep(8000);
    tell("child's calls", calls);
    set(calling(5), 3, 0);
    usleep(6000);
    tell("child's calls", calls);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  timer_delete(mine);
  struct sigevent wrong = {.sigev_notify = 77};
  timer_t timer;
  tell("no such way", timer_create(CLOCK_MONOTONIC, &wrong, &timer) == -1 && errno == EINVAL);
  tell("no such clock", timer_create(1000, NULL, &timer) == -1 && errno == EINVAL);
}

static void set_descriptor(int fd, int first_ms) {
  const struct itimerspec times = {{0, 0}, {0, first_ms * 1000000}};
  if (timerfd_settime(fd, 0, &times, NULL) != 0) tell("not set", errno);
}
static long ends(int fd) {
  uint64_t ends = 0;
  return read(fd, &ends, sizeof ends) == sizeof ends ? (long)ends : -errno;
}
static void shared(void) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const pid_t child = fork();
  if (child == 0) {
    set_descriptor(timer, 4);
    _exit(0);
  }
  tell("set by the child", ends(timer));
  waitpid(child, NULL, 0);
  const pid_t reader = fork();
  if (reader == 0) {
    struct itimerspec left;
    usleep(2500);
    timerfd_gettime(timer, &left);
    tell("child sees left", left.it_value.tv_nsec / 1000000);
    tell("child reads", ends(timer));
    _exit(0);
  }
  set_descriptor(timer, 7);
  close(timer);  // the child's copy stays open
  waitpid(reader, NULL, 0);

  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) exit(2);
  char byte = 0;
  struct iovec part = {&byte, 1};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const pid_t maker = fork();
  if (maker == 0) {
    const int made = timerfd_create(CLOCK_REALTIME, 0);
    set_descriptor(made, 9);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof made);
    memcpy(CMSG_DATA(&control.header), &made, sizeof made);
    sendmsg(sockets[1], &message, 0);
    tell("maker reads", ends(made));
    _exit(0);
  }
  recvmsg(sockets[0], &message, 0);
  int got;
  memcpy(&got, CMSG_DATA(&control.header), sizeof got);
  set_descriptor(got, 3);
  waitpid(maker, NULL, 0);
  set_descriptor(got, 2);
  tell("by message", ends(got));
  tell("not to be written", write(got, "12345678", 8) == -1 && errno == EINVAL);
}

static volatile sig_atomic_t alarmed, ticked;
static void note(int signal) { signal == SIGALRM ? ++alarmed : ++ticked; }
// After exec the alarm and the timerfd still exist; the POSIX timer does not.
static void image(void) {
  signal(SIGALRM, note);
  signal(SIGUSR1, note);
  struct itimerval left;
  getitimer(ITIMER_REAL, &left);
  tell("alarm is left", left.it_value.tv_usec > 0);
  tell("image reads", ends(20));
  set_descriptor(20, 3);
  tell("image reads", ends(20));
  tell("not inherited", fcntl(21, F_GETFD) == -1);
  while (alarmed == 0) pause();
  tell("alarmed", alarmed);
  tell("ticked", ticked);
}
static void before_image(const char* program) {
  const struct itimerval soon = {{0, 0}, {0, 15000}};
  timer_t timer;
  struct sigevent to = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_create(CLOCK_MONOTONIC, &to, &timer);
  set(timer, 5, 0);
  setitimer(ITIMER_REAL, &soon, NULL);
  const int kept = timerfd_create(CLOCK_MONOTONIC, 0), lost = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  dup2(kept, 20);
  dup3(lost, 21, O_CLOEXEC);
  set_descriptor(kept, 4);
  execl(program, program, "image", NULL);
}

int main(int count, char** arguments) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (count > 1) {
    image();
    return 0;
  }
  functions();
  shared();
  before_image(arguments[0]);
  return 1;
}

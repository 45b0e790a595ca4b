// SPDX-License-Identifier: Apache-2.0
// POSIX message queues between processes of a host. Each output line shows a result and the time in milliseconds.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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
  printf("%s: %ld%s%s at %d\n", what, number, number < 0 ? " " : "", number < 0 ? strerrorname_np(errno) : "",
         now_ms());
  fflush(stdout);
}

static struct timespec in_ms(int milliseconds) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_nsec += milliseconds * 1000000;
  if (time.tv_nsec >= 1000000000) {
    ++time.tv_sec;
    time.tv_nsec -= 1000000000;
  }
  return time;
}
static long receive(mqd_t queue) {
  char text[64];
  unsigned priority = 0;
  const ssize_t bytes = mq_receive(queue, text, sizeof text, &priority);
  return bytes < 0 ? bytes : (long)priority * 1000 + text[0];
}
static void nothing(int signal) { (void)signal; }

int main(void) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 64};
  tell("none yet", mq_open("/queue", O_RDWR));
  const mqd_t queue = mq_open("/queue", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  tell("made", queue != -1);
  tell("again", mq_open("/queue", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));
  tell("no name", mq_open("queue", O_RDWR));
  mq_send(queue, "\1", 1, 1);
  mq_send(queue, "\2", 1, 9);
  tell("too long", mq_send(queue, "", 65, 0));
  struct timespec limit = in_ms(4);
  tell("full", mq_timedsend(queue, "\3", 1, 5, &limit));
  const pid_t writer = fork();
  if (writer == 0) {
    tell("written", mq_send(queue, "\4", 1, 5));
    _exit(0);
  }
  usleep(3000);
  tell("the highest first", receive(queue));
  waitpid(writer, NULL, 0);
  tell("then", receive(queue));
  tell("then", receive(queue));
  limit = in_ms(4);
  char text[64];
  tell("empty", mq_timedreceive(queue, text, sizeof text, NULL, &limit));
  limit.tv_nsec = -1;
  tell("no time", mq_timedreceive(queue, text, sizeof text, NULL, &limit));
  const pid_t reader = fork();
  if (reader == 0) {
    const mqd_t same = mq_open("/queue", O_RDONLY);
    tell("read by another", receive(same));
    struct pollfd wanted = {same, POLLIN, 0};
    tell("polled", poll(&wanted, 1, 1000));
    tell("by number", syscall(SYS_mq_timedreceive, same, text, sizeof text, NULL, NULL));
    _exit(0);
  }
  usleep(3000);
  mq_send(queue, "\5", 1, 0);
  usleep(3000);
  mq_send(queue, "\6", 1, 0);
  waitpid(reader, NULL, 0);
  const struct sigaction action = {.sa_handler = nothing};
  sigaction(SIGALRM, &action, NULL);
  ualarm(3000, 0);
  tell("interrupted", receive(queue));
  struct mq_attr none = {.mq_flags = O_NONBLOCK};
  mq_setattr(queue, &none, NULL);
  tell("not now", receive(queue));
  tell("removed", mq_unlink("/queue"));
  tell("no more", mq_unlink("/queue"));
  tell("left behind", mq_open("/left", O_RDWR | O_CREAT, 0600, &attributes) != -1);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Reads, writes and waits on descriptors within a simulated host. The mode selects the test. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
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

/* --- Reads of a counter descriptor into less than 8 bytes, with and without a pending count. */

static void read_too_little(void) {
  const int counters[] = {eventfd(0, 0), eventfd(1, 0), timerfd_create(CLOCK_MONOTONIC, 0)};
  char room[7];
  for (int i = 0; i < 3; ++i) printf("%s\n", read(counters[i], room, sizeof room) < 0 ? strerror(errno) : "read");
}

/* --- More descriptors than one message to the simulator can hold. */

enum { kPipes = 70 };
static int ends[kPipes][2];

static void *write_last(void *unused) {
  usleep(5000);
  if (write(ends[kPipes - 1][1], "x", 1) != 1) fail("write");
  return unused;
}

static void take(const char *what, int ready, long start, pthread_t writer) {
  char byte;
  printf("%s: %d after %ld ms\n", what, ready, milliseconds() - start);
  if (read(ends[kPipes - 1][0], &byte, 1) != 1) fail("read");
  pthread_join(writer, NULL);
}

static void wait_for_many(void) {
  struct pollfd watched[kPipes + 2];
  pthread_t writer;
  for (int i = 0; i < kPipes; ++i) {
    if (pipe(ends[i]) != 0) fail("pipe");
    watched[i] = (struct pollfd){ends[i][0], POLLIN, 0};
  }
  /* The first descriptor again with another event, and an invalid descriptor. */
  watched[kPipes] = (struct pollfd){ends[0][0], POLLPRI, 0};
  watched[kPipes + 1] = (struct pollfd){-1, POLLIN, 0};

  long start = milliseconds();
  printf("nothing: %d", poll(watched, kPipes + 2, 7));
  printf(" after %ld ms\n", milliseconds() - start);

  start = milliseconds();
  pthread_create(&writer, NULL, write_last, NULL);
  const int polled = poll(watched, kPipes + 2, 60000);
  printf("the last %s, ", watched[kPipes - 1].revents == POLLIN ? "is ready" : "is not");
  take("poll", polled, start, writer);

  fd_set set;
  FD_ZERO(&set);
  for (int i = 0; i < kPipes; ++i) FD_SET(ends[i][0], &set);
  start = milliseconds();
  pthread_create(&writer, NULL, write_last, NULL);
  take("select", select(ends[kPipes - 1][0] + 1, &set, NULL, NULL, NULL), start, writer);

  const int epoll = epoll_create1(0);
  for (int i = 0; i < kPipes; ++i) {
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[i][0], &event) != 0) fail("epoll_ctl");
  }
  struct epoll_event seen[2];
  start = milliseconds();
  pthread_create(&writer, NULL, write_last, NULL);
  take("epoll", epoll_wait(epoll, seen, 2, -1), start, writer);
}

/* --- Names of UNIX sockets, in every call that takes or returns one. */

static struct sockaddr_un name_of(const char *name, socklen_t *length) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + (*name == '@'), name + (*name == '@'), strlen(name) - (*name == '@'));
  *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (*name != '@'));
  return address;
}

static int bound(const char *name) {
  socklen_t length;
  const struct sockaddr_un address = name_of(name, &length);
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (bind(fd, (const void *)&address, length) != 0) fail("bind");
  return fd;
}

static void tell_name(const char *call, const struct sockaddr_un *address, socklen_t length) {
  const int abstract = address->sun_path[0] == 0;
  printf("%s from %s%.*s\n", call, abstract ? "@" : "",
         (int)(length - offsetof(struct sockaddr_un, sun_path) - 1), address->sun_path + abstract);
}

/* Sends from one socket to the other, once with each pair of calls. */
static void exchange(const char *from_name, const char *to_name) {
  const int from = bound(from_name), to = bound(to_name);
  char text[8];
  struct sockaddr_un there;
  socklen_t length;
  struct sockaddr_un address = name_of(to_name, &length);
  if (sendto(from, "one", 4, 0, (void *)&address, length) != 4) fail("sendto");
  struct iovec part = {"two", 4};
  struct msghdr message = {.msg_name = &address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
  if (sendmsg(from, &message, 0) != 4) fail("sendmsg");
  length = sizeof there;
  if (recvfrom(to, text, sizeof text, 0, (void *)&there, &length) != 4) fail("recvfrom");
  tell_name("recvfrom", &there, length);
  part = (struct iovec){text, sizeof text};
  message = (struct msghdr){.msg_name = &there, .msg_namelen = sizeof there, .msg_iov = &part, .msg_iovlen = 1};
  if (recvmsg(to, &message, 0) != 4) fail("recvmsg");
  tell_name("recvmsg", &there, message.msg_namelen);
  /* A message to the returned name arrives. */
  if (sendto(to, text, 4, 0, (void *)&there, message.msg_namelen) != 4) fail("answer");
  printf("answered %zd\n", read(from, text, sizeof text));
}

/* --- Writes larger than the free room. */

enum { kBytes = 1000000 };
static unsigned char sent_bytes[kBytes];

static void *read_all(void *descriptor) {
  static unsigned char got[kBytes];
  const int fd = *(const int *)descriptor;
  size_t at = 0;
  usleep(3000);
  for (ssize_t part; at < kBytes && (part = read(fd, got + at, kBytes - at)) > 0;) at += (size_t)part;
  printf("read %zu, %s\n", at, memcmp(got, sent_bytes, kBytes) == 0 ? "as written" : "something else");
  return NULL;
}

static ssize_t by_write(int fd) { return write(fd, sent_bytes, kBytes); }
static ssize_t by_send(int fd) { return send(fd, sent_bytes, kBytes, 0); }
static ssize_t by_writev(int fd) {
  struct iovec parts[50];
  for (int i = 0; i < 50; ++i)
    parts[i] = (struct iovec){sent_bytes + (i < 3 ? 0 : 10 * (i - 2)), i < 3 ? 0 : 10};
  parts[49] = (struct iovec){sent_bytes + 470, kBytes - 470};
  parts[3] = (struct iovec){sent_bytes, 20};
  return writev(fd, parts, 50);
}

static void transfer(const char *what, const int pair[2], ssize_t (*write_all)(int)) {
  pthread_t reader;
  const long start = milliseconds();
  pthread_create(&reader, NULL, read_all, (void *)&pair[0]);
  const ssize_t written = write_all(pair[1]);
  printf("%s %zd after %ld ms\n", what, written, milliseconds() - start);
  pthread_join(reader, NULL);
}

static void write_much(void) {
  int ends_of_pipe[2], pair[2];
  for (int i = 0; i < kBytes; ++i) sent_bytes[i] = (unsigned char)(i * 7 + i / 251);
  if (pipe(ends_of_pipe) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("pipe");
  transfer("write to a pipe", ends_of_pipe, by_write);
  transfer("writev to a pipe", ends_of_pipe, by_writev);
  transfer("write to a socket", pair, by_write);
  transfer("writev to a socket", pair, by_writev);
  transfer("send", pair, by_send);
  fcntl(ends_of_pipe[1], F_SETFL, O_NONBLOCK);
  printf("what does not block takes %zd", by_write(ends_of_pipe[1]));
  printf(", then %d\n", by_write(ends_of_pipe[1]) < 0 && errno == EAGAIN);
}

/* --- Descriptor numbers that are used again. */

enum { kNumber = 300 };

static int random_at_number(void) {
  const int fd = open("/dev/urandom", O_RDONLY);
  if (dup2(fd, kNumber) != kNumber) fail("dup2");
  close(fd);
  return kNumber;
}

static void read_text(const char *closed_by) {
  char text[8] = "", there[64];
  snprintf(there, sizeof there, "/tmp/descriptor_calls.%s", closed_by);
  FILE *file = fopen(there, "w+");
  if (file == NULL || fputs("text", file) < 0 || fflush(file) != 0) fail(there);
  int moved = -1;
  for (int fd; (fd = open(there, O_RDONLY)) <= kNumber && fd >= 0;) moved = fd;
  if (read(kNumber, text, 4) != 4) fail("read");
  printf("%s: %s\n", closed_by, moved == kNumber ? text : "another number");
  fclose(file);
  for (int fd = 3; fd <= moved; ++fd) close(fd);
}

static void reuse_numbers(void) {
  fclose(fdopen(random_at_number(), "r"));
  read_text("fclose");
  random_at_number();
  close_range(kNumber, kNumber, 0);
  read_text("close_range");
  random_at_number();
  closefrom(kNumber);
  read_text("closefrom");

  const int stream = socket(AF_INET, SOCK_STREAM, 0);
  int pair[2];
  struct sockaddr address = {0};
  socklen_t length = sizeof address;
  fclose(fdopen(stream, "r"));
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || pair[0] != stream) fail("socketpair");
  if (getsockname(stream, &address, &length) != 0) fail("getsockname");
  printf("a pair of %s\n", address.sa_family == AF_UNIX ? "UNIX sockets" : "strangers");
}

/* --- Polls while signals arrive. */

/* A successful call must not change errno. */
static void look_often(void) {
  enum { kLooks = 50000 };
  const int epoll = epoll_create1(0);
  int changed = 0, ready = 0;
  if (pipe(ends[0]) != 0) fail("pipe");
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0][0], &event) != 0) fail("epoll_ctl");
  struct pollfd watched = {ends[0][0], POLLIN, 0};
  for (int look = 0; look < kLooks; ++look) {
    errno = 0;
    ready += look % 2 == 0 ? poll(&watched, 1, 0) : epoll_wait(epoll, &event, 1, 0);
    changed += errno != 0;
  }
  printf("ready: %d, errno changed: %d\n", ready, changed);
}

/* Writes to standard output, whatever reads it. */
static void print_much(void) {
  for (int i = 0; i < kBytes; ++i) sent_bytes[i] = i % 100 == 99 ? '\n' : 'x';
  const ssize_t written = by_write(1);
  fprintf(stderr, "%zd written\n", written);
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(mode, "many") == 0) wait_for_many();
  if (strcmp(mode, "small_reads") == 0) read_too_little();
  if (strcmp(mode, "names") == 0) exchange("/tmp/descriptor_calls.a", "/tmp/descriptor_calls.b");
  if (strcmp(mode, "names") == 0) exchange("@descriptor_calls.a", "@descriptor_calls.b");
  if (strcmp(mode, "write_much") == 0) write_much();
  if (strcmp(mode, "look_often") == 0) look_often();
  if (strcmp(mode, "print_much") == 0) print_much();
  if (strcmp(mode, "reuse_numbers") == 0) reuse_numbers();
  return 0;
}

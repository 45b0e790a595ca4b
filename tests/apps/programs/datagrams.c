// SPDX-License-Identifier: Apache-2.0
// UDP between simulated hosts, and within one. Each output line shows the result of a call.
//   serve: answers until it gets the message to stop; ask ADDRESS6 ADDRESS4: a client on another host; alone: within a
//   host
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPort = 7000, kMost = 65507 };
static char buffer[kMost + 1];

static long long microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static const char *reason(long result) { return result >= 0 ? "ok" : strerrorname_np(errno); }

static socklen_t fill(struct sockaddr_storage *address, const char *text, int port) {
  memset(address, 0, sizeof *address);
  struct sockaddr_in *v4 = (void *)address;
  struct sockaddr_in6 *v6 = (void *)address;
  if (strchr(text, ':')) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    inet_pton(AF_INET6, text, &v6->sin6_addr);
    return sizeof *v6;
  }
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  inet_pton(AF_INET, text, &v4->sin_addr);
  return sizeof *v4;
}

static const char *text_of(const struct sockaddr_storage *address) {
  static char text[4][80];
  static int next;
  char *to = text[next++ % 4], digits[64];
  const struct sockaddr_in *v4 = (void *)address;
  const struct sockaddr_in6 *v6 = (void *)address;
  const int is_v6 = address->ss_family == AF_INET6;
  inet_ntop(address->ss_family, is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr, digits, sizeof digits);
  snprintf(to, sizeof text[0], "[%s]:%d", digits, ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
  return to;
}

static int make(int family) { return socket(family, SOCK_DGRAM, 0); }

static int bound(const char *text, int port) {
  struct sockaddr_storage address;
  const socklen_t length = fill(&address, text, port);
  const int fd = make(address.ss_family);
  if (bind(fd, (void *)&address, length) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static const char *try_bind(const char *text, int port) {
  const int fd = bound(text, port);
  const char *result = reason(fd);
  if (fd >= 0) close(fd);
  return result;
}

static const char *own_name(int fd) {
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  return getsockname(fd, (void *)&name, &length) == 0 ? text_of(&name) : strerrorname_np(errno);
}
static const char *peer_name(int fd) {
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  return getpeername(fd, (void *)&name, &length) == 0 ? text_of(&name) : strerrorname_np(errno);
}

static int connect_to(int fd, const char *text, int port) {
  struct sockaddr_storage address;
  const socklen_t length = fill(&address, text, port);
  return connect(fd, (void *)&address, length);
}
static int disconnect(int fd) {
  const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
  return connect(fd, &nobody, sizeof nobody);
}

static long send_to(int fd, const void *bytes, size_t count, const char *text, int port) {
  struct sockaddr_storage address;
  const socklen_t length = fill(&address, text, port);
  return sendto(fd, bytes, count, 0, (void *)&address, length);
}

static void show_receive(const char *what, int fd, size_t room, int flags) {
  struct sockaddr_storage from;
  socklen_t length = sizeof from;
  const long got = recvfrom(fd, buffer, room, flags, (void *)&from, &length);
  if (got < 0) {
    printf("%s: %s\n", what, reason(got));
  } else {
    printf("%s: %ld bytes, %.*s, from %s\n", what, got, got > 8 || got > (long)room ? 4 : (int)got, buffer,
           text_of(&from));
  }
}

static int serve(void) {
  const int fd = bound("::", kPort);
  for (;;) {
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    const long got = recvfrom(fd, buffer, sizeof buffer, 0, (void *)&from, &length);
    if (got < 0) return 1;
    if (got == 4 && memcmp(buffer, "stop", 4) == 0) break;
    printf("%ld from %s\n", got, text_of(&from));
    sendto(fd, buffer, (size_t)got, 0, (void *)&from, length);
  }
  return 0;
}

static int ask(const char *v6, const char *v4) {
  usleep(1000);
  const int fd = make(AF_INET);
  long long start = microseconds();
  printf("sent %ld\n", send_to(fd, "hello", 5, v4, kPort));
  show_receive("answer", fd, sizeof buffer, 0);
  printf("after %lld us, own %s\n", microseconds() - start, own_name(fd));

  start = microseconds();
  printf("connect %s", reason(connect_to(fd, v4, kPort)));
  printf(", own %s, peer %s\n", own_name(fd), peer_name(fd));
  memset(buffer, 'x', sizeof buffer);
  printf("greatest %ld", send(fd, buffer, kMost, 0));
  printf(", greater %s\n", reason(send(fd, buffer, kMost + 1, 0)));
  show_receive("greatest back", fd, sizeof buffer, 0);
  printf("after %lld us\n", microseconds() - start);
  printf("empty %ld", send(fd, "", 0, 0));
  printf(", back %ld\n", recv(fd, buffer, sizeof buffer, 0));

  const int closed = make(AF_INET);
  connect_to(closed, v4, kPort + 1);
  printf("to nobody %ld", (long)write(closed, "x", 1));
  printf(", then %s\n", reason(read(closed, buffer, 1)));

  const int six = make(AF_INET6);
  printf("six %s", reason(connect_to(six, v6, kPort)));
  printf(", own %s\n", own_name(six));
  struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  printf("parts %ld\n", (long)sendmsg(six, &message, 0));
  char first[2], second[10];
  struct iovec into[2] = {{first, 2}, {second, sizeof second}};
  struct sockaddr_storage from;
  message = (struct msghdr){.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = into, .msg_iovlen = 2};
  const long got = recvmsg(six, &message, 0);
  printf("parts back %ld: %.2s %.3s from %s\n", got, first, second, text_of(&from));
  send(fd, "stop", 4, 0);
  return 0;
}

// --- Within a host.

static void names_and_ports(void) {
  const int fd = bound("127.0.0.1", kPort);
  printf("same port %s, wildcard %s, other address %s\n", try_bind("127.0.0.1", kPort), try_bind("0.0.0.0", kPort),
         try_bind("10.0.0.1", kPort));
  printf("six beside %s, of others %s, group %s\n", try_bind("::1", kPort), try_bind("10.0.1.1", 0),
         try_bind("224.0.0.1", 0));
  close(fd);
  printf("closed %s\n", try_bind("127.0.0.1", kPort));
  const int any = bound("0.0.0.0", 0);
  printf("ephemeral %s, listen %s\n", own_name(any), reason(listen(any, 1)));
  int type = 0, family = 0;
  socklen_t length = sizeof type;
  getsockopt(any, SOL_SOCKET, SO_TYPE, &type, &length);
  getsockopt(any, SOL_SOCKET, SO_DOMAIN, &family, &length);
  printf("type %d, family %d\n", type == SOCK_DGRAM, family == AF_INET);
  // Programs find the local address of a route with such a connect().
  const int probe = make(AF_INET);
  printf("probe %s", reason(connect_to(probe, "10.0.1.1", 0)));
  printf(" %s", own_name(probe));
  printf(", dissolved %s", reason(disconnect(probe)));
  printf(" %s, send %s\n", own_name(probe), reason(send(probe, "x", 1, 0)));
  printf("broadcast %s", reason(send_to(probe, "x", 1, "10.0.255.255", kPort)));
  printf(", multicast %s", reason(send_to(probe, "x", 1, "224.0.0.1", kPort)));
  printf(", to port 0 %s\n", reason(send_to(probe, "x", 1, "10.0.0.1", 0)));
  const int one = 1;
  int shared[2];
  for (int i = 0; i < 2; ++i) {
    struct sockaddr_storage address;
    const socklen_t size = fill(&address, "127.0.0.1", kPort);
    shared[i] = make(AF_INET);
    setsockopt(shared[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    printf("reuse %s\n", reason(bind(shared[i], (void *)&address, size)));
  }
  send_to(any, "last", 4, "127.0.0.1", kPort);
  show_receive("the last one's", shared[1], sizeof buffer, 0);
  show_receive("the first one's", shared[0], sizeof buffer, MSG_DONTWAIT);
  const int group = setsockopt(any, IPPROTO_IP, IP_ADD_MEMBERSHIP, buffer, sizeof(struct ip_mreq));
  printf("membership %s\n", reason(group));
  for (int i = 0; i < 2; ++i) close(shared[i]);
  close(any);
  close(probe);
}

static void messages(void) {
  const int to = bound("127.0.0.1", kPort);
  const int from = make(AF_INET);
  connect_to(from, "127.0.0.1", kPort);
  show_receive("nothing", to, 10, MSG_DONTWAIT);
  const long long start = microseconds();
  const struct timeval limit = {.tv_usec = 20000};
  setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  show_receive("limited", to, 10, 0);
  printf("after %lld ms\n", (microseconds() - start) / 1000);
  send(from, "abcdef", 6, 0);
  send(from, "gh", 2, 0);
  struct pollfd polled = {to, POLLIN | POLLOUT, 0};
  usleep(100);
  printf("poll %d", poll(&polled, 1, -1));
  printf(" %d", polled.revents == (POLLIN | POLLOUT));
  int waiting = 0;
  ioctl(to, FIONREAD, &waiting);
  printf(", waiting %d\n", waiting);
  show_receive("peeked", to, 4, MSG_PEEK);
  show_receive("its length", to, 4, MSG_PEEK | MSG_TRUNC);
  struct iovec part = {buffer, 4};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  const long cut = recvmsg(to, &message, 0);
  printf("cut %ld, told %d\n", cut, message.msg_flags == MSG_TRUNC);
  show_receive("next", to, 10, 0);
  fcntl(to, F_SETFL, O_NONBLOCK);
  printf("without waiting %s\n", reason(read(to, buffer, 10)));

  struct mmsghdr many[5];
  struct iovec parts[5];
  struct sockaddr_storage names[5];
  memset(many, 0, sizeof many);
  for (int i = 0; i < 5; ++i) {
    parts[i] = (struct iovec){buffer + 100 * i, (size_t)i};
    many[i].msg_hdr.msg_iov = &parts[i];
    many[i].msg_hdr.msg_iovlen = 1;
  }
  printf("sendmmsg %d\n", sendmmsg(from, many, 5, 0));
  usleep(100);
  for (int i = 0; i < 5; ++i) {
    parts[i].iov_len = 100;
    many[i].msg_hdr.msg_name = &names[i];
    many[i].msg_hdr.msg_namelen = sizeof names[i];
  }
  const int came = recvmmsg(to, many, 5, 0, NULL);
  printf("recvmmsg %d:", came);
  for (int i = 0; i < came; ++i) printf(" %u %d", many[i].msg_len, names[i].ss_family == AF_INET);
  printf("\n");

  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = to};
  epoll_ctl(set, EPOLL_CTL_ADD, to, &event);
  printf("epoll %d", epoll_wait(set, &event, 1, 5));
  send(from, "x", 1, 0);
  printf(" %d", epoll_wait(set, &event, 1, -1));
  printf(", read %ld\n", (long)read(to, buffer, 10));
  close(set);
  close(to);
  close(from);
}

// Datagrams beyond the receiver's buffer are dropped; the others arrive in order.
static void flood(void) {
  const int to = bound("127.0.0.1", kPort);
  const int from = make(AF_INET);
  connect_to(from, "127.0.0.1", kPort);
  enum { kSent = 1000 };
  int sent = 0, came = 0, in_order = 1;
  for (int i = 0; i < kSent; ++i) {
    memcpy(buffer, &i, sizeof i);
    sent += send(from, buffer, 1400, 0) == 1400;
  }
  usleep(2000);
  for (; recv(to, buffer, sizeof buffer, MSG_DONTWAIT) == 1400; ++came) in_order &= memcmp(buffer, &came, 4) == 0;
  printf("flood: sent %d, some came %d, some lost %d, in order %d\n", sent, came > 50, came < kSent, in_order);
  close(to);
  close(from);
}

static void shared(void) {
  const int to = bound("127.0.0.1", kPort);
  const int copy = dup(to);
  close(to);
  const pid_t child = fork();
  if (child == 0) {
    show_receive("child", copy, sizeof buffer, 0);
    const int from = make(AF_INET);
    send_to(from, "back", 4, "127.0.0.1", kPort);
    _exit(0);
  }
  const int from = make(AF_INET);
  usleep(1000);
  send_to(from, "there", 5, "127.0.0.1", kPort);
  waitpid(child, NULL, 0);
  show_receive("parent", copy, sizeof buffer, 0);
  // The end of a process releases its port.
  close(copy);
  const pid_t victim = fork();
  if (victim == 0) {
    bound("127.0.0.1", kPort);
    abort();
  }
  waitpid(victim, NULL, 0);
  printf("after a death %s\n", try_bind("127.0.0.1", kPort));
}

int main(int count, char **words) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count == 2 && strcmp(words[1], "serve") == 0) return serve();
  if (count == 4 && strcmp(words[1], "ask") == 0) return ask(words[2], words[3]);
  names_and_ports();
  messages();
  flood();
  shared();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Options of a TCP socket between two hosts, before and after they are set. tcp_options [SERVER] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kPort = 7300, kShared = 7301, kConnections = 40 };
#define IPPROTO_LEVEL_IP 0

static const char *result(int failed) { return failed ? strerror(errno) : "ok"; }
static int number_of(int fd, int level, int name) {
  int value = -77;
  socklen_t length = sizeof value;
  return getsockopt(fd, level, name, &value, &length) == 0 ? value : -errno;
}
static int set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value); }
static struct sockaddr_in address_of(const char *ip, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  if (ip != NULL) inet_aton(ip, &address.sin_addr);
  return address;
}
static int listening(int port, int shared) {
  struct sockaddr_in address = address_of(NULL, port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (shared && set(fd, SOL_SOCKET, SO_REUSEPORT, 1) != 0) return -1;
  if (bind(fd, (void *)&address, sizeof address) != 0 || listen(fd, 64) != 0) return -1;
  return fd;
}

static const struct {
  const char *name;
  int level, option, other;
} numbers[] = {
    {"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1},
    {"TCP_CORK", IPPROTO_TCP, TCP_CORK, 1},
    {"TCP_MAXSEG", IPPROTO_TCP, TCP_MAXSEG, 1000},
    {"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 60},
    {"TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 5},
    {"TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 3},
    {"TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 30000},
    {"TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK, 0},
    {"TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, 1},
    {"IP_TOS", IPPROTO_LEVEL_IP, IP_TOS, 0x10},
    {"IP_TTL", IPPROTO_LEVEL_IP, IP_TTL, 3},
    {"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1},
    {"SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT, 1},
};

static void options(int fd) {
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    const int before = number_of(fd, numbers[i].level, numbers[i].option);
    const int failed = set(fd, numbers[i].level, numbers[i].option, numbers[i].other);
    const int copy = dup(fd);  /* options belong to the socket, not to the descriptor */
    const int after = number_of(copy, numbers[i].level, numbers[i].option);
    printf("%s %d, %s, %d\n", numbers[i].name, before, result(failed), after);
    close(copy);
  }
  char control[16] = "";
  socklen_t length = sizeof control;
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &length);
  const int failed = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  printf("%s, %s, ", control, result(failed));
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &length);
  printf("%s, %s\n", control, result(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nobody's", 8)));
  printf("IP_MTU %d\n", number_of(fd, IPPROTO_LEVEL_IP, 14));
  printf("refused: TCP_KEEPCNT %s, IP_TTL %s, 4711 %s\n", result(set(fd, IPPROTO_TCP, TCP_KEEPCNT, 200)),
         result(set(fd, IPPROTO_LEVEL_IP, IP_TTL, 0)), result(set(fd, IPPROTO_TCP, 4711, 1)));
  struct tcp_info info = {0};
  length = sizeof info;
  const int told = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
  printf("TCP_INFO %s, %u bytes: state %d, rtt %u us, mss %u, pmtu %u, lost %u, window %d\n", result(told),
         (unsigned)(length >= 104), info.tcpi_state, info.tcpi_rtt, info.tcpi_snd_mss, info.tcpi_pmtu,
         info.tcpi_total_retrans, info.tcpi_snd_cwnd > 0);
}

static void serve(void) {
  const int fd = listening(kPort, 0);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 99);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  printf("listens %d, taken: %s\n", number_of(fd, SOL_SOCKET, SO_ACCEPTCONN), result(listening(kPort, 1) < 0));
  const int connection = accept(fd, NULL, NULL);
  printf("accepted with %d %d, listens %d\n", number_of(connection, IPPROTO_TCP, TCP_KEEPIDLE),
         number_of(connection, SOL_SOCKET, SO_KEEPALIVE), number_of(connection, SOL_SOCKET, SO_ACCEPTCONN));
  struct pollfd sharing[2] = {{listening(kShared, 1), POLLIN, 0}, {listening(kShared, 1), POLLIN, 0}};
  char ready = 1;
  if (write(connection, &ready, 1) != 1) exit(1);
  int taken[2] = {0, 0};
  while (taken[0] + taken[1] < kConnections) {
    poll(sharing, 2, -1);
    for (int i = 0; i < 2; ++i)
      if ((sharing[i].revents & POLLIN) != 0 && close(accept(sharing[i].fd, NULL, NULL)) == 0) ++taken[i];
  }
  printf("shared by two: %d\n", taken[0] >= kConnections / 4 && taken[1] >= kConnections / 4);
}

static int connected(const char *server, int port) {
  const struct sockaddr_in address = address_of(server, port);
  for (;;) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *)&address, sizeof address) == 0) return fd;
    close(fd);
    usleep(1000);
  }
}
static void ask(const char *server) {
  const int unconnected = socket(AF_INET, SOCK_STREAM, 0);
  printf("unconnected: mss %d, IP_MTU %s\n", number_of(unconnected, IPPROTO_TCP, TCP_MAXSEG),
         strerror(-number_of(unconnected, IPPROTO_LEVEL_IP, 14)));
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  set(datagrams, IPPROTO_LEVEL_IP, IP_TTL, 9);
  printf("datagrams: IP_TOS %d, IP_TTL %d, TCP_NODELAY %s\n", number_of(datagrams, IPPROTO_LEVEL_IP, IP_TOS),
         number_of(datagrams, IPPROTO_LEVEL_IP, IP_TTL), strerror(-number_of(datagrams, IPPROTO_TCP, TCP_NODELAY)));
  const int fd = connected(server, kPort);
  options(fd);
  char ready;
  if (read(fd, &ready, 1) != 1) exit(1);
  for (int i = 0; i < kConnections; ++i) connected(server, kShared);
}

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count < 2) serve();
  else ask(arguments[1]);
  return 0;
}

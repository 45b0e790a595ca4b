// SPDX-License-Identifier: Apache-2.0
/* Sockets inherited from another image (exec) or received from another process (SCM_RIGHTS): they work unchanged.
 *   serve          TCP and UDP, port 7000: each socket serves in another image
 *   ask HOST       two of each, by sockets that another process opened
 *   stream FD, datagram FD    what `serve` executes */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int good, const char *what) {
  if (good) return;
  perror(what);
  exit(1);
}

static const char *name_of(const struct sockaddr_storage *address) {
  static char text[64], numeric[INET6_ADDRSTRLEN];
  const struct sockaddr_in *v4 = (const void *)address;
  const struct sockaddr_in6 *v6 = (const void *)address;
  const int is_v4 = address->ss_family == AF_INET;
  inet_ntop(address->ss_family, is_v4 ? (const void *)&v4->sin_addr : &v6->sin6_addr, numeric, sizeof numeric);
  snprintf(text, sizeof text, "%s", numeric);
  return text;
}

static void in_another_image(const char *mode, int fd) {
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  fflush(stdout);
  if (fork() == 0) {
    execl("/proc/self/exe", "inherited_sockets", mode, number, NULL);
    exit(1);
  }
  close(fd);
}

static int listening(int type, int port) {
  const int fd = socket(AF_INET6, type, 0);
  const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  need(bind(fd, (const void *)&any, sizeof any) == 0, "bind");
  if (type == SOCK_STREAM) need(listen(fd, 8) == 0, "listen");
  return fd;
}

static void serve(void) {
  in_another_image("datagram", listening(SOCK_DGRAM, 7000));
  const int server = listening(SOCK_STREAM, 7000);
  for (int i = 0; i < 2; ++i) in_another_image("stream", accept(server, NULL, NULL));
  while (wait(NULL) > 0) {}
}

static void serve_stream(int fd) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  need(getpeername(fd, (void *)&peer, &length) == 0, "getpeername");
  char text[64];
  const ssize_t got = read(fd, text, sizeof text);
  printf("stream: %.*s from %s\n", (int)got, text, name_of(&peer));
  need(write(fd, text, (size_t)got) == got, "write");
}

static void serve_datagrams(int fd) {
  for (int i = 0; i < 2; ++i) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    char text[64];
    const ssize_t got = recvfrom(fd, text, sizeof text, 0, (void *)&peer, &length);
    printf("datagram: %.*s from %s\n", (int)got, text, name_of(&peer));
    need(sendto(fd, text, (size_t)got, 0, (const void *)&peer, length) == got, "sendto");
  }
}

static void send_descriptor(int to, int fd) {
  char byte = 'x', room[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(control), &fd, sizeof fd);
  need(sendmsg(to, &message, 0) == 1, "sendmsg");
  close(fd);
}
static int receive_descriptor(int from) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  need(recvmsg(from, &message, 0) == 1, "recvmsg");
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

static int connected(int type, const char *host) {
  struct addrinfo hints = {.ai_socktype = type, .ai_family = AF_INET}, *found;
  need(getaddrinfo(host, "7000", &hints, &found) == 0, "getaddrinfo");
  const int fd = socket(AF_INET, type, 0);
  need(connect(fd, found->ai_addr, found->ai_addrlen) == 0, "connect");
  return fd;
}

static void ask(const char *host) {
  int ends[2];
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  fflush(stdout);
  if (fork() == 0) {
    for (int i = 0; i < 4; ++i) send_descriptor(ends[0], connected(i < 2 ? SOCK_STREAM : SOCK_DGRAM, host));
    exit(0);
  }
  for (int i = 0; i < 4; ++i) {
    const int fd = receive_descriptor(ends[1]);
    char text[64];
    const int length = snprintf(text, sizeof text, "question %d", i);
    need(send(fd, text, (size_t)length, 0) == length, "send");
    memset(text, 0, sizeof text);
    const ssize_t got = recv(fd, text, sizeof text, 0);
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    need(getsockname(fd, (void *)&own, &bytes) == 0, "getsockname");
    printf("answer: %d bytes, %s, to %s\n", (int)got, text, name_of(&own));
    close(fd);
  }
  wait(NULL);
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  if (strcmp(mode, "serve") == 0) serve();
  if (strcmp(mode, "ask") == 0) ask(arguments[2]);
  if (strcmp(mode, "stream") == 0) serve_stream(atoi(arguments[2]));
  if (strcmp(mode, "datagram") == 0) serve_datagrams(atoi(arguments[2]));
}

// SPDX-License-Identifier: Apache-2.0
// Each worker has a connection and a datagram socket to the worker with the same number on the other host.
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

constexpr unsigned kPort = 7100;
unsigned datagram_port(unsigned host, unsigned worker) { return kPort + 10 * (1 + host) + worker; }
HostSockets sockets[kMostWorkers];

sockaddr_in any_address(unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t(port));
  return address;
}
sockaddr_in address_of(const char* peer, unsigned port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  expect(getaddrinfo(peer, nullptr, &hints, &found) == 0, "getaddrinfo");
  sockaddr_in address;
  memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  address.sin_port = htons(std::uint16_t(port));
  return address;
}
int bound_socket(int type, unsigned port) {
  const int fd = socket(AF_INET, type, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in own = any_address(port);
  expect_call(bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), "bind");
  return fd;
}

int accepted(int listener, sockaddr_in& from) {
  socklen_t length = sizeof from;
  const int fd = accept(listener, reinterpret_cast<sockaddr*>(&from), &length);
  expect_call(fd, "accept");
  return fd;
}
// Repeats connect() until the peer listens.
int connected(const sockaddr_in& to) {
  for (;;) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return fd;
    expect(errno == ECONNREFUSED, "connect", errno, ECONNREFUSED);
    close(fd);
    usleep(100);
  }
}

}  // namespace

void connect_hosts(const char* peer, unsigned workers) {
  for (unsigned i = 0; i < workers; ++i) {
    HostSockets& own = sockets[i];
    own.datagrams = bound_socket(SOCK_DGRAM, datagram_port(me.host, i));
    sockaddr_in other;
    if (peer == nullptr) {
      const int listener = bound_socket(SOCK_STREAM, kPort + i);
      expect_call(listen(listener, 1), "listen");
      own.connection = accepted(listener, other);
      close(listener);
    } else {
      other = address_of(peer, kPort + i);
      own.connection = connected(other);
    }
    other.sin_port = htons(std::uint16_t(datagram_port(1 - me.host, i)));
    expect_call(connect(own.datagrams, reinterpret_cast<const sockaddr*>(&other), sizeof other),
                "connect of a datagram socket");
    const int on = 1;
    setsockopt(own.connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

const HostSockets& host_sockets(unsigned worker) { return sockets[worker]; }

}  // namespace walk

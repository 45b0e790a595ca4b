// SPDX-License-Identifier: Apache-2.0
// Connecting sockets of the out-of-band network: within the simulation, and to hosts outside.
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/abi/net_address.h"
#include "sim/attached/network/network.h"
#include "sim/attached/network/outside_world.h"

namespace rnicsim::sim {
namespace {

std::uint64_t inode_of(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 ? file.st_ino : 0;
}

}  // namespace

void Network::connect(Number number, const abi::NetAddress& to, std::function<void(int, std::uint16_t)> done) {
  const Socket& socket = sockets_.at(number);
  if (socket.peer) return done(EISCONN, 0);
  if (socket.listening) return done(EOPNOTSUPP, 0);
  const auto host = addresses_.host_of(socket.host, to);
  if (!host) return done(EHOSTUNREACH, 0);
  if (socket.v6_only && is_v4(to)) return done(ENETUNREACH, 0);
  if (outside_ != nullptr && outside_->has(*host)) return connect_outside(number, *host, to, std::move(done));
  arrivals_.push(now() + latency(socket.host, *host),
                 [this, number, to, done = std::move(done)]() mutable { finish_connect(number, to, std::move(done)); });
}

// The connection request has arrived at the listener's host.
void Network::finish_connect(Number number, const abi::NetAddress& to, std::function<void(int, std::uint16_t)> done) {
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return;  // the program died in the meantime
  Socket& client = found->second;
  const std::uint32_t host = *addresses_.host_of(client.host, to);
  const Duration back = now() + latency(client.host, host);
  const auto answer = [&](int error) {
    const std::uint16_t port = client.local.port;
    arrivals_.push(back, [error, port, done = std::move(done)] { done(error, port); });
  };
  // Since the request left, another thread connected the socket or made it listen.
  if (client.peer) return answer(EISCONN);
  if (client.listening) return answer(EOPNOTSUPP);
  const auto target = listener(host, to, number);
  if (!target) return answer(ECONNREFUSED);
  Socket& server = sockets_.at(*target);
  // Linux queues backlog + 1 connections. It drops the next request, which times out since the client sends no second
  // one.
  if (server.waiting.size() > server.backlog) return answer(ETIMEDOUT);
  const auto port = client.local.port != 0 ? std::optional(client.local.port) : ephemeral_port(client.host);
  if (!port) return answer(EADDRNOTAVAIL);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return answer(ENOBUFS);

  if (client.local.port == 0 || is_wildcard(client.local)) client.local = addresses_.own_address(client.host, to);
  client.local.port = *port;
  client.remote = to;
  const Number accepted = open(host, Descriptor(ends[0]), server.version, inode_of(ends[1]));
  Socket& peer = sockets_.at(accepted);
  peer.near_end = Descriptor(ends[1]);
  peer.local = to;
  peer.remote = client.local;
  peer.peer = number;
  client.peer = accepted;
  server.waiting.push_back(accepted);
  // Makes the listening descriptor readable; accept() takes the byte.
  constexpr std::byte kMark{1};
  [[maybe_unused]] const auto written = ::send(server.far_end.get(), &kMark, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  answer(0);
}

// The port is chosen before the peer is asked: program and peer must see the same port.
void Network::connect_outside(Number number, std::uint32_t outside_host, const abi::NetAddress& to,
                              std::function<void(int, std::uint16_t)> done) {
  Socket& socket = sockets_.at(number);
  if (socket.local.port == 0) {
    const auto port = ephemeral_port(socket.host);
    if (!port) return done(EADDRNOTAVAIL, 0);
    if (is_v4(to)) std::memcpy(socket.local.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    socket.local.port = *port;
  }
  const std::uint16_t port = socket.local.port;
  const auto way = latency(socket.host, outside_host);
  outside_->connect(socket.host, port, to, [this, number, to, way, done = std::move(done)](int error) mutable {
    if (error == 0) return finish_connect(number, to, std::move(done));
    arrivals_.push(now() + way, [error, done = std::move(done)] { done(error, 0); });
  });
}

void Network::listens_no_more(Socket& socket) {
  if (outside_ != nullptr && socket.listening) outside_->listens_no_more(socket.host, socket.local);
  socket.listening = false;
}

}  // namespace rnicsim::sim

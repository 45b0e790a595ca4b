// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/tcp_gateway.h"

#include <fcntl.h>
#include <lwip/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/abi/net_address.h"
#include "sim/guest/wire/lwip_address.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint8_t kBacklog = 64;
// Each stream has file descriptors, which the run's programs need as well.
constexpr std::size_t kMostStreams = 256;

abi::NetAddress own_address(const abi::NetworkInterface& interface, bool v6, std::uint16_t port) {
  abi::NetAddress address;
  address.port = port;
  if (v6) {
    std::memcpy(address.ip, interface.ipv6, sizeof interface.ipv6);
  } else {
    std::memcpy(address.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    std::memcpy(address.ip + sizeof abi::kMappedPrefix, interface.ipv4, sizeof interface.ipv4);
  }
  return address;
}

struct Pair {
  Descriptor near, far;
};

std::optional<Pair> stream_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pair{Descriptor(ends[0]), Descriptor(ends[1])};
}

IpVersion version_of(const abi::NetAddress& address) { return abi::is_v4(address) ? IpVersion::v4 : IpVersion::v6; }

}  // namespace

TcpGateway::~TcpGateway() {
  for (const auto& [place, listener] : listeners_)
    for (auto* socket : listener->sockets) tcp_close(socket);
}

// --- From the world.

void TcpGateway::listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only) {
  if (abi::is_loopback(local)) return;
  auto& listener = listeners_[{host, local.port}];
  if (listener) return void(++listener->users);
  listener = std::make_unique<Listener>(Listener{*this, {}});
  for (std::size_t i = 0; i < stack_.interfaces(); ++i)
    if (stack_.interface(i).host == host)
      for (const bool v6 : {false, true}) listen_at(*listener, i, local, v6_only, local.port, v6);
}

void TcpGateway::listen_at(Listener& listener, std::size_t interface, const abi::NetAddress& local, bool v6_only,
                           std::uint16_t port, bool v6) {
  const auto& own = stack_.interface(interface);
  const auto address = own_address(own, v6, port);
  if ((v6 ? own.ipv6_prefix : own.ipv4_prefix) == 0 || !abi::covers(local, v6_only, address)) return;
  auto* socket = tcp_new_ip_type(v6 ? IPADDR_TYPE_V6 : IPADDR_TYPE_V4);
  if (socket == nullptr) return;
  tcp_bind_netif(socket, &stack_.port(interface));
  const auto bound = to_lwip(address);
  // A port can be bound again right after its connection has ended, as in the run's own network.
  ip_set_option(socket, SOF_REUSEADDR);
  if (tcp_bind(socket, &bound, port) != ERR_OK) {
    tcp_abort(socket);
    return;
  }
  socket = tcp_listen_with_backlog(socket, kBacklog);
  tcp_arg(socket, &listener);
  tcp_accept(socket, Listener::accept);
  listener.sockets.push_back(socket);
}

void TcpGateway::listens_no_more(std::uint32_t host, const abi::NetAddress& local) {
  const auto found = listeners_.find({host, local.port});
  if (found == listeners_.end() || --found->second->users != 0) return;
  for (auto* socket : found->second->sockets) tcp_close(socket);
  listeners_.erase(found);
}

signed char TcpGateway::Listener::accept(void* listener, tcp_pcb* connection, signed char error) {
  if (error != ERR_OK || connection == nullptr) return ERR_VAL;
  auto& self = *static_cast<Listener*>(listener);
  if (self.gateway.accept(connection)) return ERR_OK;
  tcp_abort(connection);
  return ERR_ABRT;
}

// In the run's network, connects the part of the outside host's program to the listening program.
bool TcpGateway::accept(tcp_pcb* connection) {
  const auto remote = from_lwip(connection->remote_ip, connection->remote_port);
  const auto local = from_lwip(connection->local_ip, connection->local_port);
  const auto* host = outside_at(remote);
  if (host == nullptr || streams_.size() >= kMostStreams) return false;
  auto pair = stream_pair();
  if (!pair) return false;
  const auto stream = streams_.emplace_back(std::make_shared<TcpStream>(connection));
  const auto number = network_->open(host->host, std::move(pair->far), version_of(remote));
  std::uint16_t port = 0;
  network_->bind(number, remote, port);
  // Join when the connection is established: the network drops bytes that are written earlier.
  const auto end = std::make_shared<Descriptor>(std::move(pair->near));
  network_->connect(number, local, [end, weak = std::weak_ptr(stream)](int error, std::uint16_t) {
    const auto waiting = weak.lock();
    if (waiting && error == 0) waiting->join(std::move(*end));
    if (waiting && error != 0) waiting->abandon();
  });
  return true;
}

// --- To the world.

void TcpGateway::connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
                         std::function<void(int error)> answered) {
  const auto way = stack_.way(host, to);
  if (!way) return answered(ENETUNREACH);
  auto* connection = tcp_new_ip_type(abi::is_v4(to) ? IPADDR_TYPE_V4 : IPADDR_TYPE_V6);
  if (connection == nullptr) return answered(ENOBUFS);
  tcp_bind_netif(connection, &stack_.port(*way));
  const auto local = to_lwip(own_address(stack_.interface(*way), !abi::is_v4(to), port));
  if (tcp_bind(connection, &local, port) != ERR_OK) {
    tcp_abort(connection);
    return answered(EADDRINUSE);
  }
  const auto stream = streams_.emplace_back(std::make_shared<TcpStream>(connection));
  stream->answered = [this, weak = std::weak_ptr(stream), to, answered = std::move(answered)](int error) {
    const auto made = weak.lock();
    if (error != 0 || !made) return answered(error != 0 ? error : ECONNABORTED);
    finish_connect(made, to, answered);
  };
  stream->connect(to);
}

// The machine outside has accepted: connects the program, in the run's network, to a listener in that machine's place.
void TcpGateway::finish_connect(const Stream& stream, const abi::NetAddress& to,
                                const std::function<void(int)>& answered) {
  const auto* host = outside_at(to);
  auto* listener = host != nullptr ? stand_in(*host, to) : nullptr;
  if (listener == nullptr) {
    stream->abandon();
    return answered(ENOBUFS);
  }
  answered(0);
  Network::Number accepted = 0;
  Descriptor near_end;
  abi::NetAddress peer;
  // The program closed its socket meanwhile: there is no connection to accept.
  if (network_->accept(listener->number, accepted, near_end, peer) != 0) return stream->abandon();
  char mark = 0;
  [[maybe_unused]] const auto read = ::recv(listener->near_end.get(), &mark, 1, MSG_DONTWAIT);
  ::fcntl(near_end.get(), F_SETFL, O_NONBLOCK);
  stream->join(std::move(near_end));
}

TcpGateway::StandIn* TcpGateway::stand_in(const abi::NetworkInterface& host, const abi::NetAddress& address) {
  std::vector<std::uint8_t> key(address.ip, address.ip + sizeof address.ip);
  key.push_back(static_cast<std::uint8_t>(address.port >> 8));
  key.push_back(static_cast<std::uint8_t>(address.port));
  const auto found = stand_ins_.find(key);
  if (found != stand_ins_.end()) return &found->second;
  auto pair = stream_pair();
  if (!pair) return nullptr;
  StandIn made{network_->open(host.host, std::move(pair->far), version_of(address)), std::move(pair->near)};
  std::uint16_t port = 0;
  if (network_->bind(made.number, address, port) != 0 || network_->listen(made.number, kBacklog) != 0) return nullptr;
  return &stand_ins_.emplace(std::move(key), std::move(made)).first->second;
}

const abi::NetworkInterface* TcpGateway::outside_at(const abi::NetAddress& address) const {
  const auto found = std::ranges::find_if(outside_, [&](const abi::NetworkInterface& host) {
    return abi::is_v4(address) ? std::memcmp(address.ip + sizeof abi::kMappedPrefix, host.ipv4, sizeof host.ipv4) == 0
                               : std::memcmp(address.ip, host.ipv6, sizeof host.ipv6) == 0;
  });
  return found != outside_.end() ? &*found : nullptr;
}

void TcpGateway::watch(std::vector<pollfd>& watched) const {
  for (const auto& stream : streams_) stream->watch(watched);
}

bool TcpGateway::has_outstanding() const {
  return std::ranges::any_of(streams_, [](const Stream& stream) { return stream->has_outstanding(); });
}

void TcpGateway::work() {
  for (const auto& stream : streams_) stream->work();
  streams_.remove_if([](const Stream& stream) { return stream->is_over(); });
}

}  // namespace rnicsim::sim

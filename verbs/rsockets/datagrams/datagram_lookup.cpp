// SPDX-License-Identifier: Apache-2.0
// Addresses of a datagram socket: its own, its destinations and the ports from which they are reached; and the lookup
// datagrams of peers.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "verbs/rsockets/datagrams/datagram.h"
#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets {

namespace {

constexpr int kResolveTimeoutMs = 2000;
constexpr std::size_t kMostPieces = 8;

std::uint16_t& port_of(SocketAddress& address) {
  return address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port;
}

bool is_wildcard(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr);
  return address.v4.sin_addr.s_addr == INADDR_ANY;
}

bool is_loopback(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
  return ntohl(address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

// Converts the IPv4-mapped address of a sender, received on an IPv6 socket, to IPv4.
void unmap_v4(SocketAddress& address) {
  if (address.any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr)) return;
  SocketAddress v4{};
  v4.v4.sin_family = AF_INET;
  v4.v4.sin_port = address.v6.sin6_port;
  std::memcpy(&v4.v4.sin_addr, &address.v6.sin6_addr.s6_addr[12], sizeof v4.v4.sin_addr);
  address = v4;
}

// Resolves address and route to `to`. `local` may be a wildcard: then rdma_cm chooses the source address.
int resolve(Connection& way, const SocketAddress& local, const sockaddr& to) {
  SocketAddress source = local;
  port_of(source) = 0;
  SocketAddress destination{};
  std::memcpy(&destination, &to, length_of(to));
  if (const int error = way.create(RDMA_PS_UDP)) return error;
  sockaddr* from = is_wildcard(local) ? nullptr : &source.any;
  if (rdma_resolve_addr(way.id(), from, &destination.any, kResolveTimeoutMs) != 0) return errno;
  if (const int error = way.expect(RDMA_CM_EVENT_ADDR_RESOLVED)) return error;
  if (rdma_resolve_route(way.id(), kResolveTimeoutMs) != 0) return errno;
  return way.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

}  // namespace

// The loopback address belongs to no device. As in rdma_cm, the socket is bound to the wildcard, but still reports the
// loopback address.
Answer Datagram::bind(const sockaddr& address, socklen_t length) {
  if (length < length_of(address)) return -EINVAL;
  const Lock lock(mutex_);
  if (const int error = prepare()) return -error;
  SocketAddress local{};
  std::memcpy(&local, &address, length_of(address));
  const SocketAddress asked = local;
  if (is_loopback(asked)) {
    if (asked.any.sa_family == AF_INET6) {
      local.v6.sin6_addr = in6addr_any;
    } else {
      local.v4.sin_addr.s_addr = INADDR_ANY;
    }
  }
  if (::bind(udp_, &local.any, length_of(local.any)) != 0) return -errno;
  if (is_loopback(asked)) loopback_ = asked;
  return 0;
}

Answer Datagram::local_address(AddressOut out) {
  if (out.length == nullptr) return -EINVAL;
  const Lock lock(mutex_);
  SocketAddress address{};
  socklen_t length = sizeof address;
  if (::getsockname(udp_, &address.any, &length) != 0) return -errno;
  if (loopback_ && is_wildcard(address)) {
    port_of(*loopback_) = port_of(address);
    address = *loopback_;
  }
  put_address(address.any, out);
  return 0;
}

Datagram::Key::Key(const sockaddr& address) {
  SocketAddress copy{};
  std::memcpy(&copy, &address, length_of(address));
  bytes[0] = std::uint8_t(address.sa_family);
  const std::uint16_t port = port_of(copy);
  std::memcpy(&bytes[2], &port, sizeof port);
  if (address.sa_family == AF_INET6) {
    std::memcpy(&bytes[4], &copy.v6.sin6_addr, 16);
  } else {
    std::memcpy(&bytes[4], &copy.v4.sin_addr, 4);
  }
}

// Local address with port number. An unbound socket gets a port now, since its QPs put the port into their headers.
int Datagram::local_port_number(SocketAddress& local) const {
  socklen_t length = sizeof local;
  if (::getsockname(udp_, &local.any, &length) != 0) return errno;
  if (port_of(local) != 0) return 0;
  SocketAddress any{};
  any.any.sa_family = sa_family_t(domain);
  if (::bind(udp_, &any.any, length_of(any.any)) != 0) return errno;
  length = sizeof local;
  return ::getsockname(udp_, &local.any, &length) != 0 ? errno : 0;
}

int Datagram::find_port(SocketAddress local, DatagramPort*& found) {
  for (const auto& port : ports_) {
    if (Key(port->address().any) != Key(local.any)) continue;
    found = port.get();
    return 0;
  }
  auto made = std::make_unique<DatagramPort>();
  if (const int error = made->make(local, sizes_, slots_)) return error;
  found = made.get();
  ports_.push_back(std::move(made));
  // Sleeping threads do not watch the new port yet, possibly including this thread's own wait.
  waiters_.wake_all();
  return 0;
}

// The mutex is released during the resolution.
int Datagram::find_destination(Lock& lock, const sockaddr& address, Destination*& found) {
  const Key key(address);
  if (const auto known = destinations_.find(key); known != destinations_.end()) {
    found = &known->second;
    return 0;
  }
  SocketAddress local{};
  if (const int error = local_port_number(local)) return error;
  lock.unlock();
  Connection way;
  const int error = resolve(way, local, address);
  lock.lock();
  if (error != 0) return error;
  SocketAddress source{};
  const sockaddr& resolved = *rdma_get_local_addr(way.id());
  std::memcpy(&source, &resolved, length_of(resolved));
  port_of(source) = port_of(local);
  DatagramPort* port = nullptr;
  if (const int failed = find_port(source, port)) return failed;
  const auto [place, added] = destinations_.try_emplace(key, Destination{{}, port, nullptr, std::nullopt});
  found = &place->second;
  if (!added) return 0;  // another thread added it in the meantime
  std::memcpy(&found->address, &address, length_of(address));
  found->handle = port->make_handle(way.id()->route);
  if (found->handle != nullptr) return 0;
  const int failed = errno;
  destinations_.erase(place);
  return failed;
}

Answer Datagram::send_by_udp(const Destination& destination, Op op, std::span<const iovec> from, int flags) {
  if (from.size() > kMostPieces) return -ENOTSUP;
  const SocketAddress& local = destination.port->address();
  LookupHeader header;
  header.op = op;
  header.qp_number = destination.port->qp_number();
  header.v6 = local.any.sa_family == AF_INET6;
  if (header.v6) {
    std::memcpy(header.address.data(), &local.v6.sin6_addr, 16);
  } else {
    std::memcpy(header.address.data(), &local.v4.sin_addr, 4);
  }
  auto bytes = encode(header);
  std::array<iovec, kMostPieces + 1> pieces{iovec{bytes.data(), header.length()}};
  std::ranges::copy(from, pieces.begin() + 1);
  SocketAddress to = destination.address;
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = length_of(to.any);
  message.msg_iov = pieces.data();
  message.msg_iovlen = from.size() + 1;
  const ssize_t sent = ::sendmsg(udp_, &message, flags & (MSG_DONTWAIT | MSG_NOSIGNAL));
  return sent < 0 ? -errno : Answer(bytes_of(from));
}

void Datagram::take_lookup() {
  std::array<std::byte, kLowWater + kLookupHeaderV6> bytes;
  SocketAddress source{};
  socklen_t length = sizeof source;
  const ssize_t count = ::recvfrom(udp_, bytes.data(), bytes.size(), MSG_DONTWAIT, &source.any, &length);
  if (count < 0) return;
  unmap_v4(source);
  const auto header = parse_lookup_header(bytes.data(), std::size_t(count));
  if (!header || header->v6 != (source.any.sa_family == AF_INET6)) return;
  Lock lock(mutex_);
  Destination* peer = nullptr;
  if (closed_ || find_destination(lock, source.any, peer) != 0) return;
  peer->qp_number = header->qp_number;
  if (header->op == Op::control) return;
  send_by_udp(*peer, Op::control, {}, 0);
  arrivals_.push_back({nullptr,
                       0,
                       std::uint32_t(header->length()),
                       std::uint32_t(std::size_t(count) - header->length()),
                       {bytes.begin(), bytes.begin() + count},
                       source});
  waiters_.wake_others();
}

}  // namespace rnicsim::rsockets

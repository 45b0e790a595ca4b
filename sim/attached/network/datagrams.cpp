// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/network/datagrams.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "model/abi/net_address.h"
#include "sim/attached/ready_descriptors.h"

namespace rnicsim::sim {
namespace {

using abi::NetAddress;

constexpr std::size_t kHeaderBytes = sizeof(abi::DatagramHeader);
constexpr std::size_t kMostMessageBytes = kHeaderBytes + abi::kMostDatagramBytes;
constexpr std::uint64_t kIpAndUdpBytes = 28;  // on the line, before the payload

// Linux doubles the value of SO_SNDBUF.
void set_buffer(const Descriptor& end, std::uint64_t bytes) {
  // The largest datagram must fit into an empty buffer.
  const int half = int(std::clamp<std::uint64_t>(bytes, kMostMessageBytes + 1024, 1u << 30) / 2);
  ::setsockopt(end.get(), SOL_SOCKET, SO_SNDBUF, &half, sizeof half);
}

std::size_t unread(const Descriptor& end) {
  int bytes = 0;
  return ::ioctl(end.get(), FIONREAD, &bytes) == 0 ? std::size_t(std::max(bytes, 0)) : 0;
}

}  // namespace

Datagrams::Datagrams(const NetworkParams& params, const HostAddresses& addresses)
    : params_(params), addresses_(addresses), message_(kMostMessageBytes + 1), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Datagrams::Number Datagrams::open(std::uint32_t host, Descriptor far_end, Version version, std::uint64_t inode) {
  const Number number = next_++;
  ::fcntl(far_end.get(), F_SETFL, ::fcntl(far_end.get(), F_GETFL) | O_NONBLOCK);
  set_buffer(far_end, kBufferBytes);
  Socket& socket = sockets_[number];
  socket.host = host;
  socket.version = version;
  socket.far_end = std::move(far_end);
  socket.inode = inode;
  socket.local = wildcard(socket);
  watch(number, EPOLLIN, EPOLL_CTL_ADD);
  return number;
}

bool Datagrams::belongs_to(Number number, std::uint32_t host) const {
  const auto found = sockets_.find(number);
  return found != sockets_.end() && found->second.host == host;
}

std::optional<Datagrams::Found> Datagrams::find(std::uint32_t host, std::uint64_t inode) const {
  for (const auto& [number, socket] : sockets_)
    if (socket.host == host && socket.inode == inode) return Found{number, socket.version};
  return std::nullopt;
}

void Datagrams::names(Number number, NetAddress (&names)[2]) const {
  const Socket& socket = sockets_.at(number);
  names[0] = socket.local;
  names[1] = socket.remote.value_or(NetAddress{});
}

// --- Addresses and ports.

NetAddress Datagrams::wildcard(const Socket& socket) const {
  NetAddress address;
  if (socket.version == Version::v4) std::memcpy(address.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
  return address;
}

Duration Datagrams::latency(std::uint32_t from, std::uint32_t to) const {
  return from == to ? params_.loopback_latency : params_.latency;
}

std::optional<std::uint16_t> Datagrams::free_port(std::uint32_t host) {
  return ports_.take(host, [&](std::uint16_t port) {
    return std::ranges::any_of(
        sockets_, [&](const auto& entry) { return entry.second.host == host && entry.second.local.port == port; });
  });
}

// Binds the socket to `local`. False: another socket has the port, or no port is free.
bool Datagrams::takes_port(Number number, const NetAddress& local) {
  Socket& socket = sockets_.at(number);
  std::uint16_t port = local.port;
  if (port == 0) {
    const auto free = free_port(socket.host);
    if (!free) return false;
    port = *free;
  } else {
    const bool taken = std::ranges::any_of(sockets_, [&](const auto& entry) {
      const auto& [other_number, other] = entry;
      if (other_number == number || other.host != socket.host || other.local.port != port) return false;
      if (other.reuses_address && socket.reuses_address) return false;
      return covers(local, socket.v6_only, other.local) || covers(other.local, other.v6_only, local);
    });
    if (taken) return false;
  }
  socket.local = local;
  socket.local.port = port;
  socket.order = next_order_++;
  return true;
}

int Datagrams::bind(Number number, NetAddress address) {
  Socket& socket = sockets_.at(number);
  const bool fits = socket.version == Version::v4 ? is_v4(address) : !socket.v6_only || !is_v4(address);
  if (socket.local.port != 0 || !fits) return EINVAL;
  if (!is_wildcard(address) && addresses_.host_of(socket.host, address) != socket.host) return EADDRNOTAVAIL;
  if (!takes_port(number, address)) return EADDRINUSE;
  socket.address_asked = !is_wildcard(address);
  socket.port_asked = address.port != 0;
  return 0;
}

// Completes the destination `to` and chooses the source address. Returns 0 or an errno.
int Datagrams::route(const Socket& socket, NetAddress& to, NetAddress& source) const {
  if (is_wildcard(to)) {  // the wildcard means this host
    const bool v4 = is_v4(to);
    if (v4) to.ip[12] = 127;
    to.ip[15] = 1;
  }
  const bool v4 = is_v4(to);
  if (socket.version == Version::v4 ? !v4 : v4 && socket.v6_only) return ENETUNREACH;
  if (!v4 && !is_loopback(to) && !addresses_.has_v6(socket.host)) return ENETUNREACH;
  const std::uint16_t port = socket.local.port;
  if (!is_wildcard(socket.local)) {
    if (is_v4(socket.local) != v4) return ENETUNREACH;
    if (is_loopback(socket.local) && addresses_.host_of(socket.host, to) != socket.host) return EINVAL;
    source = socket.local;
    return 0;
  }
  if (is_v4(socket.local) && !v4) return ENETUNREACH;
  source = addresses_.own_address(socket.host, to);
  if (is_loopback(source) && v4) source.ip[13] = source.ip[14] = 0, source.ip[15] = 1;
  source.port = port;
  return 0;
}

// Datagrams sent before this call still go to the old peer.
int Datagrams::connect(Number number, NetAddress to) {
  take_all(number, now());
  Socket& socket = sockets_.at(number);
  NetAddress source;
  if (const int error = route(socket, to, source); error != 0) return error;
  if (socket.local.port == 0 && !takes_port(number, wildcard(socket))) return EAGAIN;
  source.port = socket.local.port;
  socket.local = source;
  socket.remote = to;
  return 0;
}

int Datagrams::disconnect(Number number) {
  take_all(number, now());
  Socket& socket = sockets_.at(number);
  socket.remote.reset();
  const std::uint16_t port = socket.port_asked ? socket.local.port : 0;
  if (!socket.address_asked) socket.local = wildcard(socket);
  socket.local.port = port;
  return 0;
}

int Datagrams::set_option(Number number, abi::DatagramOption option, std::uint64_t value) {
  Socket& socket = sockets_.at(number);
  switch (option) {
    case abi::DatagramOption::reuse_address: socket.reuses_address = value != 0; return 0;
    case abi::DatagramOption::v6_only:
      if (socket.version != Version::v6) return ENOPROTOOPT;
      if (socket.local.port != 0) return EINVAL;
      socket.v6_only = value != 0;
      return 0;
    case abi::DatagramOption::receive_buffer: set_buffer(socket.far_end, value); return 0;
    case abi::DatagramOption::reuse_port: break;  // for streams only
  }
  return EINVAL;
}

int Datagrams::prepare_send(Number number, NetAddress& to) {
  Socket& socket = sockets_.at(number);
  if (to.port == 0) {
    if (!socket.remote) return EDESTADDRREQ;
    to = *socket.remote;
    if (to.port == 0) return EINVAL;
  }
  NetAddress source;
  if (const int error = route(socket, to, source); error != 0) return error;
  return socket.local.port != 0 || takes_port(number, wildcard(socket)) ? 0 : EAGAIN;
}

// --- Datagrams from programs.

void Datagrams::watch(Number number, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = number;
  ::epoll_ctl(epoll_.get(), operation, sockets_.at(number).far_end.get(), &event);
}

// Each socket contributes at most one datagram, the start of a wait for its line, or its end: a program that writes
// outside its turn must not stop the simulator.
void Datagrams::collect(Duration written) {
  for_each_ready(epoll_, sockets_.size(),
                 [&](const epoll_event& event) { look(event.data.u32, event.events, written); });
}

void Datagrams::look(Number number, std::uint32_t events, Duration written) {
  if ((events & EPOLLHUP) != 0) {  // the last descriptor of the program's end is closed
    take_all(number, written);
    sockets_.erase(number);
  } else if (sockets_.at(number).line_free > std::max(written, now())) {
    await_line(number);
  } else {
    take_one(number, written);
  }
}

void Datagrams::await_line(Number number) {
  Socket& socket = sockets_.at(number);
  if (std::exchange(socket.line_awaited, true)) return;
  watch(number, 0, EPOLL_CTL_MOD);  // only EPOLLHUP, which needs no flag
  events_.push(socket.line_free, [this, number] { line_is_free(number); });
}

void Datagrams::line_is_free(Number number) {
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return;
  Socket& socket = found->second;
  socket.line_awaited = false;
  if (socket.line_free <= now()) take_one(number, now());
  if (unread(socket.far_end) > 0) {
    await_line(number);
  } else {
    watch(number, EPOLLIN, EPOLL_CTL_MOD);
  }
}

// Returns the bytes of the message; 0: no message.
std::size_t Datagrams::take_one(Number number, Duration written) {
  Socket& socket = sockets_.at(number);
  const ssize_t got = ::recv(socket.far_end.get(), message_.data(), message_.size(), MSG_DONTWAIT);
  if (got <= 0) {
    // Shut down for writing: from now on only EPOLLHUP is of interest.
    if (got == 0 || errno != EAGAIN) watch(number, 0, EPOLL_CTL_MOD);
    return 0;
  }
  // The programs' library never writes such a message; it is dropped.
  if (std::size_t(got) < kHeaderBytes || std::size_t(got) > kMostMessageBytes) return std::size_t(got);
  abi::DatagramHeader header;
  std::memcpy(&header, message_.data(), sizeof header);
  send(number, header, std::size_t(got) - kHeaderBytes, written);
  return std::size_t(got);
}

// Takes all messages that are there now, even before the line is free.
void Datagrams::take_all(Number number, Duration written) {
  std::size_t left = unread(sockets_.at(number).far_end);
  while (left > 0) {
    const std::size_t taken = take_one(number, written);
    if (taken == 0) return;
    left -= std::min(taken, left);
  }
}

void Datagrams::send(Number number, const abi::DatagramHeader& header, std::size_t payload_bytes, Duration written) {
  Socket& socket = sockets_.at(number);
  NetAddress to = header.address;
  NetAddress source;
  if (socket.local.port == 0 || to.port == 0 || route(socket, to, source) != 0) return;
  const Duration latest = std::max(written, now());
  const Duration said{std::int64_t(std::min(header.time, std::uint64_t(latest.ps)))};
  const Duration start = std::max({said, now(), socket.line_free});
  socket.line_free = start + params_.rate.time_for({kIpAndUdpBytes + payload_bytes});
  const auto host = addresses_.host_of(socket.host, to);
  if (!host) return;  // an unused address of a simulated subnet
  const std::byte* payload = message_.data() + kHeaderBytes;
  events_.push(socket.line_free + latency(socket.host, *host),
               [this, datagram = Datagram{number, socket.host, *host, source, to, {payload, payload + payload_bytes}}] {
                 deliver(datagram);
               });
}

// --- Delivery.

void Datagrams::deliver_due() {
  std::function<void()> event;
  bool any = false;
  while (events_.pop_due(event)) {
    event();
    any = true;
  }
  if (any && on_arrival) on_arrival();
}

// The receiver: the socket with the most exact match (connected to the sender, then bound to the address, then a
// wildcard); among equals the one bound last.
std::optional<Datagrams::Number> Datagrams::receiver(const Datagram& datagram) const {
  std::optional<Number> best;
  std::tuple<bool, bool, std::uint64_t> best_rank;
  for (const auto& [number, socket] : sockets_) {
    if (socket.host != datagram.to_host || socket.local.port != datagram.destination.port) continue;
    if (!covers(socket.local, socket.v6_only, datagram.destination)) continue;
    const bool from_peer =
        socket.remote && same_ip(*socket.remote, datagram.source) && socket.remote->port == datagram.source.port;
    if (socket.remote && !from_peer) continue;
    const std::tuple rank(from_peer, !is_wildcard(socket.local), socket.order);
    if (best && rank < best_rank) continue;
    best = number;
    best_rank = rank;
  }
  return best;
}

void Datagrams::deliver(const Datagram& datagram) {
  const auto to = receiver(datagram);
  if (!to) return refuse(datagram);
  put(sockets_.at(*to), {.address = datagram.source}, datagram.payload);
}

// No socket has the port: the sender gets ECONNREFUSED if it is connected to that port.
void Datagrams::refuse(const Datagram& datagram) {
  events_.push(now() + latency(datagram.to_host, datagram.from_host), [this, datagram] {
    const auto found = sockets_.find(datagram.from);
    if (found == sockets_.end()) return;
    const Socket& socket = found->second;
    const auto& remote = socket.remote;
    if (!remote || !same_ip(*remote, datagram.destination) || remote->port != datagram.destination.port) return;
    // A sender that has unread data does not get the error: its buffer is for datagrams.
    int waiting = 0;
    if (::ioctl(socket.far_end.get(), SIOCOUTQ, &waiting) != 0 || waiting > 0) return;
    put(socket, {.address = datagram.destination, .error = ECONNREFUSED}, {});
  });
}

void Datagrams::put(const Socket& socket, abi::DatagramHeader header, const std::vector<std::byte>& payload) {
  std::array<iovec, 2> parts{{{&header, sizeof header}, {const_cast<std::byte*>(payload.data()), payload.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  // Dropped without room in the buffer, or after the program shut down its side for reading.
  [[maybe_unused]] const auto sent = ::sendmsg(socket.far_end.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace rnicsim::sim

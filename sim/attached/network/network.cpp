// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/network/network.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/abi/net_address.h"
#include "sim/attached/network/outside_world.h"
#include "sim/attached/ready_descriptors.h"

namespace rnicsim::sim {
namespace {

// Bytes that one side of a connection may have in flight and unread: Linux's largest send buffer (tcp_wmem).
constexpr std::uint64_t kMostUnderWay = 4 << 20;

}  // namespace

Network::Network(sc_core::sc_module_name name, const NetworkParams& params, std::vector<abi::NetworkInterface> hosts,
                 OutsideWorld* outside)
    : sc_module(name),
      params_(params),
      addresses_(std::move(hosts)),
      outside_(outside),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      datagrams_(params_, addresses_) {
  datagrams_.on_arrival = [this] {
    if (on_arrival) on_arrival();
  };
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = kDatagrams;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, datagrams_.descriptor(), &event);
}

std::optional<Network::Found> Network::find(std::uint32_t host, std::uint64_t inode) const {
  for (const auto& [number, socket] : sockets_)
    if (socket.host == host && socket.inode == inode) return Found{number, socket.version};
  return std::nullopt;
}

void Network::deliver_due() {
  std::function<void()> arrival;
  bool any = false;
  while (arrivals_.pop_due(arrival)) {
    arrival();
    any = true;
  }
  collect_halted(now());
  if (any && on_arrival) on_arrival();
}

Network::Number Network::open(std::uint32_t host, Descriptor far_end, IpVersion version, std::uint64_t inode) {
  const Number number = next_++;
  ::fcntl(far_end.get(), F_SETFL, ::fcntl(far_end.get(), F_GETFL) | O_NONBLOCK);
  Socket& socket = sockets_[number];
  socket.host = host;
  socket.far_end = std::move(far_end);
  socket.version = version;
  socket.inode = inode;
  watch(number);
  return number;
}

void Network::watch(Number number) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u32 = number;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sockets_.at(number).far_end.get(), &event);
}

bool Network::belongs_to(Number number, std::uint32_t host) const {
  const auto found = sockets_.find(number);
  return found != sockets_.end() && found->second.host == host;
}

// A hash of the connecting socket's number chooses between listeners with SO_REUSEPORT.
std::optional<Network::Number> Network::listener(std::uint32_t host, const abi::NetAddress& address,
                                                 Number asking) const {
  std::vector<Number> sharing;
  for (const auto& [number, socket] : sockets_) {
    if (!socket.listening || socket.host != host || socket.local.port != address.port) continue;
    if (!covers(socket.local, socket.v6_only, address)) continue;
    if (!socket.reuse_port) return number;
    sharing.push_back(number);
  }
  if (sharing.empty()) return std::nullopt;
  constexpr std::uint32_t kGolden = 0x9e3779b1;  // Knuth's multiplicative hash: the upper bits are well mixed
  return sharing[((asking * kGolden) >> 16) % sharing.size()];
}

bool Network::has_port(const Socket& socket, std::uint32_t host, std::uint16_t port) {
  return socket.host == host && socket.local.port == port && !socket.peer && !socket.write_ended;
}

// True: another socket would get connections to `address`, or this socket would get the other's.
bool Network::is_taken(const Socket& socket, const abi::NetAddress& address) const {
  return std::ranges::any_of(sockets_, [&](const auto& entry) {
    const Socket& other = entry.second;
    if (socket.reuse_port && other.reuse_port) return false;
    return has_port(other, socket.host, address.port) &&
           (covers(address, socket.v6_only, other.local) || covers(other.local, other.v6_only, address));
  });
}

std::optional<std::uint16_t> Network::ephemeral_port(std::uint32_t host) {
  return ports_.take(host, [&](std::uint16_t port) {
    return std::ranges::any_of(sockets_, [&](const auto& entry) { return has_port(entry.second, host, port); });
  });
}

int Network::set_v6_only(Number number, bool on) {
  Socket& socket = sockets_.at(number);
  if (socket.version == IpVersion::v4) return ENOPROTOOPT;
  if (socket.local.port != 0) return EINVAL;
  socket.v6_only = on;
  return 0;
}

Duration Network::latency(std::uint32_t from, std::uint32_t to) const {
  return from == to ? params_.loopback_latency : params_.latency;
}

int Network::bind(Number number, const abi::NetAddress& address, std::uint16_t& port) {
  Socket& socket = sockets_.at(number);
  if (socket.local.port != 0 || (socket.v6_only && is_v4(address))) return EINVAL;
  if (!is_wildcard(address) && addresses_.host_of(socket.host, address) != socket.host) return EADDRNOTAVAIL;
  if (address.port != 0 && is_taken(socket, address)) return EADDRINUSE;
  const auto chosen = address.port != 0 ? std::optional(address.port) : ephemeral_port(socket.host);
  if (!chosen) return EADDRINUSE;
  socket.local = address;
  socket.local.port = port = *chosen;
  return 0;
}

int Network::listen(Number number, std::uint32_t backlog) {
  Socket& socket = sockets_.at(number);
  if (socket.peer) return EINVAL;
  if (socket.local.port == 0) {
    const auto port = ephemeral_port(socket.host);
    if (!port) return EADDRINUSE;
    if (socket.version == IpVersion::v4) std::memcpy(socket.local.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    socket.local.port = *port;
  }
  if (outside_ != nullptr && !socket.listening) outside_->listens(socket.host, socket.local, socket.v6_only);
  socket.listening = true;
  socket.backlog = backlog;
  return 0;
}

int Network::accept(Number number, Number& accepted, Descriptor& near_end, abi::NetAddress& peer) {
  Socket& server = sockets_.at(number);
  if (!server.listening) return EINVAL;
  if (server.waiting.empty()) return EAGAIN;
  accepted = server.waiting.front();
  server.waiting.pop_front();
  Socket& socket = sockets_.at(accepted);
  near_end = std::move(socket.near_end);
  peer = socket.remote;
  return 0;
}

int Network::names(Number number, abi::NetAddress (&names)[2]) const {
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return EBADF;
  names[0] = found->second.local;
  names[1] = found->second.remote;
  return 0;
}

Duration Network::round_trip(Number number) const {
  const auto found = sockets_.find(number);
  if (found == sockets_.end() || !found->second.peer) return {};
  const auto host = addresses_.host_of(found->second.host, found->second.remote);
  return host ? 2 * latency(found->second.host, *host) : Duration{};
}

bool Network::take_reset(Number number, std::uint32_t host) {
  const auto found = resets_.find(number);
  if (found == resets_.end() || found->second != host) return false;
  resets_.erase(found);
  return true;
}

void Network::collect(Duration written) {
  // Programs read in their own turns, and a turn has just ended. Serving one socket may remove another.
  for (const Number number : std::vector<Number>(full_.begin(), full_.end()))
    if (full_.contains(number)) push_undelivered(number);
  // The rounds suffice for the bytes, for the ends of stream behind them, and for connections that will not be
  // accepted. A program that writes outside its turn must not stop the simulator.
  for_each_ready(epoll_, sockets_.size(), [&](const epoll_event& event) {
    event.data.u32 == kDatagrams ? datagrams_.collect(written) : collect_from(event.data.u32, written);
  });
  collect_halted(written);
}

// Reads from sockets whose peers have room again.
void Network::collect_halted(Duration written) {
  for (const Number number : std::vector<Number>(halted_.begin(), halted_.end())) {
    if (is_full(number)) continue;
    halted_.erase(number);
    watch(number);
    collect_from(number, written);
  }
}

bool Network::is_full(Number sender) const {
  const Socket& socket = sockets_.at(sender);
  const auto peer = socket.peer ? sockets_.find(*socket.peer) : sockets_.end();
  return peer != sockets_.end() && peer->second.coming >= kMostUnderWay;
}

void Network::halt(Number number) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sockets_.at(number).far_end.get(), nullptr);
  halted_.insert(number);
}

// Reads the bytes that are there now, not later ones.
void Network::collect_from(Number number, Duration written) {
  constexpr int kMostBytes = 65536;
  Socket& socket = sockets_.at(number);
  int left = 0;
  ::ioctl(socket.far_end.get(), FIONREAD, &left);
  do {
    if (is_full(number)) return halt(number);
    std::vector<std::byte> bytes(std::size_t(std::clamp(left, 1, kMostBytes)));
    const ssize_t got = ::read(socket.far_end.get(), bytes.data(), bytes.size());
    const Duration start = std::max({written, now(), socket.line_free});
    if (got <= 0) {
      // A connection that is closed with unread data is reset (RFC 2525, 2.17).
      const bool closed = got == 0 && !socket.refused;
      if (got == 0 || errno != EAGAIN) end_writing(number, start, closed ? End::closed : End::reset);
      return;
    }
    left -= int(got);
    if (!socket.peer) continue;
    bytes.resize(std::size_t(got));
    Socket& peer = sockets_.at(*socket.peer);
    peer.coming += bytes.size();
    socket.line_free = start + params_.rate.time_for({std::uint64_t(got)});
    const Duration arrival = socket.line_free + latency(socket.host, peer.host);
    arrivals_.push(arrival,
                   [this, to = *socket.peer, bytes = std::move(bytes)]() mutable { deliver(to, std::move(bytes)); });
  } while (left > 0);
}

// The program closed or shut down its side. The peer gets the end of stream after the last byte.
void Network::end_writing(Number number, Duration start, End end) {
  Socket& socket = sockets_.at(number);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.far_end.get(), nullptr);
  socket.write_ended = true;
  listens_no_more(socket);
  if (socket.peer) {
    const Duration arrival = start + latency(socket.host, sockets_.at(*socket.peer).host);
    arrivals_.push(arrival,
                   [this, to = *socket.peer, end] { end == End::reset ? deliver_reset(to) : deliver_end(to); });
  }
  for (const Number waiting : socket.waiting) {
    sockets_.at(waiting).refused = true;
    sockets_.at(waiting).near_end.reset();
  }
  socket.waiting.clear();
  forget_if_closed(number);
}

void Network::deliver(Number to, std::vector<std::byte> bytes) {
  const auto found = sockets_.find(to);
  if (found == sockets_.end()) return;
  auto& waiting = found->second.undelivered;
  waiting.insert(waiting.end(), bytes.begin(), bytes.end());
  push_undelivered(to);
}

void Network::deliver_end(Number to) {
  const auto found = sockets_.find(to);
  if (found == sockets_.end()) return;
  found->second.end_arrived = true;
  push_undelivered(to);
}

void Network::send_reset(const Socket& from) {
  const auto peer = from.peer ? sockets_.find(*from.peer) : sockets_.end();
  if (peer == sockets_.end()) return;
  arrivals_.push(now() + latency(from.host, peer->second.host), [this, to = *from.peer] { deliver_reset(to); });
}

// After a reset no bytes arrive or leave: a write fails with EPIPE, a read returns the rest and then the end of
// stream. A UNIX socket pair cannot report ECONNRESET there, so the reader asks the simulator (take_reset).
void Network::deliver_reset(Number to) {
  const auto found = sockets_.find(to);
  if (found == sockets_.end()) return;
  Socket& socket = found->second;
  if (!socket.end_arrived) resets_.emplace(to, socket.host);
  socket.end_arrived = true;
  ::shutdown(socket.far_end.get(), SHUT_RD);
  push_undelivered(to);
}

void Network::push_undelivered(Number number) {
  Socket& socket = sockets_.at(number);
  std::size_t done = 0;
  while (done < socket.undelivered.size()) {
    const ssize_t sent = ::send(socket.far_end.get(), socket.undelivered.data() + done,
                                socket.undelivered.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) break;
    // The program has shut down its side for reading. If it has closed the socket, the peer gets a reset.
    if (sent < 0 && socket.write_ended) send_reset(socket);
    done = sent < 0 ? socket.undelivered.size() : done + std::size_t(sent);
  }
  socket.undelivered.erase(socket.undelivered.begin(), socket.undelivered.begin() + std::ptrdiff_t(done));
  socket.coming -= done;
  if (!socket.undelivered.empty()) {
    full_.insert(number);
    return;
  }
  full_.erase(number);
  if (!socket.end_arrived || socket.read_ended) return;
  ::shutdown(socket.far_end.get(), SHUT_WR);
  socket.read_ended = true;
  forget_if_closed(number);
}

// Removes a connection when both sides wrote their end and saw the other's end, or are gone. A socket without a peer
// is removed when its program closes it.
void Network::forget_if_closed(Number number) {
  const Socket& socket = sockets_.at(number);
  if (!socket.write_ended) return;
  if (!socket.peer) {
    sockets_.erase(number);
    return;
  }
  const Number other = *socket.peer;
  const auto peer = sockets_.find(other);
  if (peer == sockets_.end() || !peer->second.write_ended) return;
  if (!socket.read_ended || !peer->second.read_ended) return;
  sockets_.erase(other);
  sockets_.erase(number);
}

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/socket_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include "sim/host/kernel/processes/other_processes.h"
#include "sim/host/kernel/sockets/inet_options.h"
#include "sim/host/kernel/sockets/netlink_options.h"
#include "sim/host/kernel/sockets/netlink_socket.h"
#include "sim/host/kernel/sockets/refused_options.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(setsockopt);
RNICSIM_NEXT(getsockopt);

namespace rnicsim::clock {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

struct Option {
  int level;
  int name;
  bool operator==(const Option&) const = default;
};

int call_option(const KnownDescriptor& socket, abi::DatagramOption option, int value) {
  abi::ThreadSlot* slot = network_slot();
  if (slot == nullptr) return fail(ENOBUFS);
  const int error =
      call(*slot, abi::Call::dgram_option, {socket.socket, std::uint64_t(option), std::uint64_t(std::max(value, 0))});
  return error != 0 ? fail(error) : 0;
}

bool is_same_address(const sockaddr_storage& one, const sockaddr_storage& other) {
  if (one.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(one).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  return memcmp(&reinterpret_cast<const sockaddr_in6&>(one).sin6_addr,
                &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr, sizeof(in6_addr)) == 0;
}

InetSocket describe(int fd, const KnownDescriptor& socket) {
  InetSocket told{
      .number = socket.socket, .family = socket.family, .datagrams = socket.datagrams, .listening = socket.listening};
  abi::ThreadSlot* slot = network_slot();
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  if (slot == nullptr || ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0) return told;
  told.connected = true;
  constexpr std::uint64_t kPicosecondsPerUs = 1'000'000;
  if (!socket.datagrams) told.round_trip_us = slot->value / kPicosecondsPerUs;
  told.within_host =
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 && is_same_address(own, peer);
  return told;
}

// set_inet_option() keeps the value; the simulator uses SO_REUSEPORT, too.
int set_of_inet(const KnownDescriptor& socket, Option option, const void* value, socklen_t length) {
  const InetSocket told{
      .number = socket.socket, .family = socket.family, .datagrams = socket.datagrams, .connected = socket.connected};
  const int error = set_inet_option(told, option.level, option.name, value, length);
  if (error != 0) return fail(error);
  if (option != Option{SOL_SOCKET, SO_REUSEPORT}) return 0;
  int on = 0;
  memcpy(&on, value, sizeof on);
  abi::ThreadSlot* slot = network_slot();
  if (slot == nullptr) return fail(ENOBUFS);
  const auto reuse = std::uint64_t(abi::DatagramOption::reuse_port);
  const int refused = call(*slot, abi::Call::net_option, {socket.socket, reuse, std::uint64_t(on != 0)});
  return refused != 0 ? fail(refused) : 0;
}
int get_of_inet(int fd, const KnownDescriptor& socket, Option option, void* value, socklen_t* length) {
  const int saved = errno;
  const InetSocket told = describe(fd, socket);
  errno = saved;
  const int error = get_inet_option(told, option.level, option.name, value, length);
  return error != 0 ? fail(error) : 0;
}

int set_v6_only(int fd, KnownDescriptor stream, const void* value, socklen_t length) {
  int on = 0;
  abi::ThreadSlot* slot = network_slot();
  if (value == nullptr || length < socklen_t(sizeof on) || slot == nullptr) return fail(EINVAL);
  memcpy(&on, value, sizeof on);
  const int error = call(*slot, abi::Call::net_option,
                         {stream.socket, std::uint64_t(abi::DatagramOption::v6_only), std::uint64_t(on != 0)});
  if (error != 0) return fail(error);
  stream.v6_only = on != 0;
  remember(fd, stream);
  return 0;
}

int set_of_datagrams(int fd, const KnownDescriptor& socket, Option option, const void* value, socklen_t length) {
  int number = 0;
  if (value == nullptr) return fail(EFAULT);
  memcpy(&number, value, std::min<std::size_t>(length, sizeof number));
  if (option == Option{IPPROTO_IPV6, IPV6_V6ONLY}) return call_option(socket, abi::DatagramOption::v6_only, number);
  if (is_refused(option.name)) return fail(ENOPROTOOPT);
  // A datagram of any size must fit into the descriptor's buffer.
  constexpr int kLeastBuffer = 65536;
  if (option.name == SO_SNDBUF) number = std::max(number, kLeastBuffer);
  const void* given = option.name == SO_SNDBUF ? &number : value;
  if (next_setsockopt(fd, option.level, option.name, given, length) != 0) return -1;
  if (option.name == SO_REUSEADDR) return call_option(socket, abi::DatagramOption::reuse_address, number);
  if (option.name != SO_RCVBUF) return 0;
  socklen_t bytes = sizeof number;  // the value that the kernel has set
  if (next_getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &number, &bytes) != 0) return -1;
  return call_option(socket, abi::DatagramOption::receive_buffer, number);
}

int put_number(int number, void* value, socklen_t* length) {
  *length = std::min<socklen_t>(*length, sizeof number);
  memcpy(value, &number, *length);
  return 0;
}

int get_of_socket(int fd, const KnownDescriptor& socket, int name, void* value, socklen_t* length) {
  switch (name) {
    case SO_DOMAIN: return put_number(socket.family, value, length);
    case SO_TYPE: return put_number(socket.datagrams ? SOCK_DGRAM : SOCK_STREAM, value, length);
    case SO_PROTOCOL: return put_number(socket.datagrams ? IPPROTO_UDP : IPPROTO_TCP, value, length);
    case SO_ACCEPTCONN: return put_number(socket.listening, value, length);
    case SO_ERROR:
      if (const int error = take_error(fd); error != 0) return put_number(error, value, length);
      [[fallthrough]];
    default: return next_getsockopt(fd, SOL_SOCKET, name, value, length);
  }
}

void name_peer(ucred& peer) {
  if (peer.pid > 0) peer.pid = number_of_process(peer.pid);
}

}  // namespace

void copy_options(int from, int to) {
  for (const int name : {SO_REUSEADDR, SO_BROADCAST, SO_KEEPALIVE, SO_PRIORITY, SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER}) {
    char value[sizeof(timeval)];
    socklen_t length = sizeof value;
    if (next_getsockopt(from, SOL_SOCKET, name, value, &length) == 0)
      next_setsockopt(to, SOL_SOCKET, name, value, length);
  }
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (const auto netlink = find_netlink(fd)) return set_netlink_option(fd, *netlink, level, name, value, length);
  const auto socket = find_socket(fd);
  if (!socket) return next_setsockopt(fd, level, name, value, length);
  const Option option{level, name};
  const bool is_v6_only = option == Option{IPPROTO_IPV6, IPV6_V6ONLY};
  if (level != SOL_SOCKET && !is_v6_only) return set_of_inet(*socket, option, value, length);
  if (socket->datagrams) return set_of_datagrams(fd, *socket, option, value, length);
  if (is_v6_only) return set_v6_only(fd, *socket, value, length);
  if (name == SO_REUSEPORT) return set_of_inet(*socket, option, value, length);
  return next_setsockopt(fd, level, name, value, length);
}

RNICSIM_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  if (const auto netlink = find_netlink(fd)) return get_netlink_option(fd, *netlink, level, name, value, length);
  const auto socket = find_socket(fd);
  if (!socket) {
    const int result = next_getsockopt(fd, level, name, value, length);
    const bool tells_process = result == 0 && level == SOL_SOCKET && name == SO_PEERCRED && *length >= sizeof(ucred);
    if (tells_process && simulated()) name_peer(*static_cast<ucred*>(value));
    return result;
  }
  const bool is_v6 = !socket->datagrams && socket->family == AF_INET6;
  if (is_v6 && Option{level, name} == Option{IPPROTO_IPV6, IPV6_V6ONLY})
    return put_number(socket->v6_only, value, length);
  const bool shares_port = level == SOL_SOCKET && name == SO_REUSEPORT && !socket->datagrams;
  if (level == SOL_SOCKET && !shares_port) return get_of_socket(fd, *socket, name, value, length);
  return get_of_inet(fd, *socket, {level, name}, value, length);
}

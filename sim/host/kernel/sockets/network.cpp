// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/network.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/event_descriptors.h"
#include "sim/host/kernel/files/file_locks.h"
#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/processes/process.h"
#include "sim/host/kernel/sockets/datagrams.h"
#include "sim/host/kernel/sockets/inet_address.h"
#include "sim/host/kernel/sockets/inet_options.h"
#include "sim/host/kernel/sockets/message_sockets.h"
#include "sim/host/kernel/sockets/netlink_socket.h"
#include "sim/host/kernel/sockets/real_sockets.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/kernel/sockets/socket_options.h"
#include "sim/host/kernel/sockets/unix_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(socket);
RNICSIM_NEXT(bind);
RNICSIM_NEXT(listen);
RNICSIM_NEXT(connect);
RNICSIM_NEXT(accept4);
RNICSIM_NEXT(getsockname);
RNICSIM_NEXT(getpeername);
RNICSIM_NEXT(getsockopt);
RNICSIM_NEXT(shutdown);
RNICSIM_NEXT(close);
RNICSIM_NEXT(close_range);
RNICSIM_NEXT(dup);
RNICSIM_NEXT(dup2);
RNICSIM_NEXT(dup3);
RNICSIM_NEXT(recv);
static const rnicsim::clock::Next<int(int, int, long)> next_fcntl{"fcntl64"};

namespace rnicsim::clock {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

std::uint64_t inode_of(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 ? file.st_ino : 0;
}

// Error for a socket that would bypass the simulated network: packet(7), raw(7), icmp(7), and protocols that the hosts
// do not have. 0: another socket.
int refusal_of(int family, int kind, int protocol) {
  if (family == AF_PACKET) return EPERM;
  if (family != AF_INET && family != AF_INET6) return 0;
  if (kind == SOCK_RAW || kind == SOCK_PACKET) return EPERM;
  if (kind != SOCK_STREAM && kind != SOCK_DGRAM) return ESOCKTNOSUPPORT;
  const bool stream = kind == SOCK_STREAM;
  if (!stream && (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)) return EACCES;
  const bool is_known = stream ? protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP : protocol == IPPROTO_UDP;
  return protocol == 0 || is_known ? 0 : EPROTONOSUPPORT;
}

// Opens a socket pair. One end goes to the simulator by a call; the other is the program's socket.
int open_socket(abi::ThreadSlot& slot, int flags, KnownDescriptor socket) {
  int ends[2];
  if (::socketpair(AF_UNIX, flags | (socket.datagrams ? SOCK_SEQPACKET : SOCK_STREAM), 0, ends) != 0) return -1;
  if (socket.datagrams) {
    // The size does not depend on the machine's default; the kernel doubles it.
    constexpr int kSendBuffer = 212'992 / 2;
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  }
  charge(slot, abi::CpuCost::system_call);
  send_descriptors({&ends[1], 1});
  const auto code = socket.datagrams ? abi::Call::dgram_socket : abi::Call::net_socket;
  const int error = call(slot, code, {socket.family == AF_INET6 ? 6u : 4u, inode_of(ends[0])});
  checked_call(SYS_close, ends[1]);  // (In real time close() is a cancellation point; socket() is none.)
  socket.socket = std::uint32_t(slot.value);
  if (error != 0 || !remember(ends[0], socket)) {
    checked_call(SYS_close, ends[0]);
    return fail(error != 0 ? error : EMFILE);
  }
  return ends[0];
}

}  // namespace

void know_inherited_socket(int fd) {
  int family = 0;
  socklen_t length = sizeof family;
  abi::ThreadSlot* slot = network_slot();
  if (slot == nullptr || known(fd) || next_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 ||
      family != AF_UNIX || know_inherited_netlink(fd) || call(*slot, abi::Call::net_inherited, {inode_of(fd)}) != 0)
    return;
  remember(fd, {.socket = std::uint32_t(slot->value),
                .family = slot->argument[1] == 6 ? AF_INET6 : AF_INET,
                .datagrams = slot->argument[2] != 0});
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int socket(int family, int type, int protocol) noexcept {
  abi::ThreadSlot* slot = network_slot();
  const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (family == AF_NETLINK && session() != nullptr) return open_netlink(type, protocol);
  if (slot == nullptr) return next_socket(family, type, protocol);
  if (const int error = refusal_of(family, kind, protocol); error != 0) return fail(error);
  if (family != AF_INET && family != AF_INET6) return next_socket(family, type, protocol);
  return open_socket(*slot, flags, {.family = family, .datagrams = kind == SOCK_DGRAM});
}

RNICSIM_EXPORT int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  if (const auto netlink = find_netlink(fd)) return bind_netlink(fd, *netlink, address, length);
  const auto any = as_any_v4(address, length, find_socket(fd).value_or(KnownDescriptor{}).family);
  if (any) address = reinterpret_cast<const sockaddr*>(&*any);
  if (const auto socket = find_datagrams(fd)) return bind_datagrams(fd, *socket, address, length);
  const auto stream = find_stream(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) {
    const UnixAddress leads(address, length, Last::itself);
    return next_bind(fd, leads.get(), leads.length());
  }
  if (!is_inet(address, length)) return fail(EINVAL);
  const abi::NetAddress net = to_net(address);
  if (!is_simulated(net)) return make_real(fd, *stream) != 0 ? -1 : next_bind(fd, address, length);
  charge(*slot, abi::CpuCost::system_call);
  put_address(*slot, net);
  const int error = call(*slot, abi::Call::net_bind, {stream->socket, net.port});
  return error != 0 ? fail(error) : 0;
}

RNICSIM_EXPORT int listen(int fd, int backlog) noexcept {
  if (find_message_socket(fd)) return fail(EOPNOTSUPP);
  const auto stream = find_stream(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) return next_listen(fd, backlog);
  charge(*slot, abi::CpuCost::system_call);
  const int error = call(*slot, abi::Call::net_listen, {stream->socket, std::uint64_t(std::max(backlog, 1))});
  if (error != 0) return fail(error);
  KnownDescriptor listening = *stream;
  listening.listening = true;
  remember(fd, listening);
  return 0;
}

RNICSIM_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  if (find_message_socket(fd)) return fail(EOPNOTSUPP);
  const auto stream = find_stream(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) {
    if (!prepare(fd, POLLIN, false)) return -1;
    return with_unix_name(address, length, [&] { return next_accept4(fd, address, length, flags); });
  }
  charge(*slot, abi::CpuCost::system_call);
  for (;;) {
    const int error = call(*slot, abi::Call::net_accept, {stream->socket});
    if (error == 0) break;
    if (error != EAGAIN || (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return fail(error);
    if (simulated()) {
      if (!wait_ready(*slot, fd, POLLIN)) return -1;
    } else {
      pollfd descriptor{fd, POLLIN, 0};
      if (::poll(&descriptor, 1, -1) < 0) return -1;
    }
  }
  const auto number = std::uint32_t(slot->value);
  abi::NetAddress peer;
  memcpy(&peer, slot->output, sizeof peer);
  // The simulator marks a waiting connection by a byte, so that the descriptor polls as readable.
  char mark;
  next_recv(fd, &mark, 1, MSG_DONTWAIT);
  const int arrived = receive_descriptor();
  const int accepted = ::fcntl(arrived, (flags & SOCK_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  next_close(arrived);
  if (accepted < 0) return fail(EMFILE);
  if (!remember(accepted, {.socket = number, .family = stream->family, .connected = true})) {
    next_close(accepted);
    return fail(EMFILE);
  }
  copy_options(fd, accepted);
  inherit_inet_options(stream->socket, number);
  if ((flags & SOCK_NONBLOCK) != 0) ::fcntl(accepted, F_SETFL, ::fcntl(accepted, F_GETFL) | O_NONBLOCK);
  from_net(peer, stream->family, address, length);
  return accepted;
}
RNICSIM_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) { return ::accept4(fd, address, length, 0); }

// The connection is made within the call, also for a non-blocking descriptor.
RNICSIM_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  if (const auto netlink = find_netlink(fd)) return connect_netlink(fd, *netlink, address, length);
  if (const auto socket = find_datagrams(fd)) return connect_datagrams(fd, *socket, address, length);
  const auto stream = find_stream(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) {
    const UnixAddress leads(address, length, Last::followed);
    if (simulated_slot() != nullptr) {  // a thread that waits in accept() continues at this time
      charge(*simulated_slot(), abi::CpuCost::system_call);
      sync(*simulated_slot());
    }
    return next_connect(fd, leads.get(), leads.length());
  }
  if (!is_inet(address, length)) return fail(EAFNOSUPPORT);
  const abi::NetAddress net = to_net(address);
  if (!is_simulated(net)) return make_real(fd, *stream) != 0 ? -1 : next_connect(fd, address, length);
  charge(*slot, abi::CpuCost::system_call);
  put_address(*slot, net);
  const int error = call_cancellably(*slot, abi::Call::net_connect, {stream->socket, net.port});
  if (error != 0) return fail(error);
  KnownDescriptor connected = *stream;
  connected.connected = true;
  remember(fd, connected);
  return 0;
}

RNICSIM_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  if (find_netlink(fd)) return name_netlink(fd, address, length);
  const auto socket = find_socket(fd);
  if (!socket || network_slot() == nullptr)
    return with_unix_name(address, length, [&] { return next_getsockname(fd, address, length); });
  return name_of(*socket, End::own, address, length);
}
RNICSIM_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  if (find_netlink(fd)) return name_netlink_peer(address, length);
  const auto socket = find_socket(fd);
  if (!socket || network_slot() == nullptr)
    return with_unix_name(address, length, [&] { return next_getpeername(fd, address, length); });
  return name_of(*socket, End::peer, address, length);
}

// As on Linux, a UDP socket without a peer is shut down, and ENOTCONN is returned.
RNICSIM_EXPORT int shutdown(int fd, int how) noexcept {
  if (is_kept(fd)) return fail(EBADF);
  if (find_netlink(fd)) return fail(EOPNOTSUPP);
  const auto socket = find_datagrams(fd);
  sockaddr_storage peer;
  socklen_t length = sizeof peer;
  const bool connected = !socket || ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
  const int result = next_shutdown(fd, how);
  return result == 0 && !connected ? fail(ENOTCONN) : result;
}

RNICSIM_EXPORT int close(int fd) {
  if (is_kept(fd)) return fail(EBADF);
  let_go_of_event(fd);
  forget(fd);
  return next_close(fd);
}
static void let_go_of_range(unsigned first, unsigned last) {
  for (int fd = next_known(int(std::min(first, unsigned(INT_MAX)))); fd >= 0 && unsigned(fd) <= last;
       fd = next_known(fd + 1)) {
    let_go_of_event(fd);
    forget(fd);
  }
}
RNICSIM_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (session() != nullptr && first <= last && (flags & int(CLOSE_RANGE_CLOEXEC)) == 0) let_go_of_range(first, last);
  if (session() == nullptr) return next_close_range(first, last, flags);
  const auto [lower, upper] = std::minmax({unsigned(session()->socket), unsigned(abi::kLibraryDescriptor)});
  for (const unsigned kept : {lower, upper}) {
    if (kept < first || kept > last) continue;
    if (kept > first && next_close_range(first, kept - 1, flags) != 0) return -1;
    if (kept == last) return 0;
    first = kept + 1;
  }
  return next_close_range(first, last, flags);
}
RNICSIM_EXPORT void closefrom(int first) noexcept { ::close_range(unsigned(std::max(first, 0)), ~0u, 0); }
// The third argument, of whatever type, fits a word.
static int control(int fd, int command, long argument) {
  if (is_kept(fd)) return fail(EBADF);
  if (const auto waited = control_lock(fd, command, reinterpret_cast<struct flock*>(argument))) return *waited;
  if (command == F_SETOWN && simulated()) argument = real_pid_of(pid_t(argument));
  const int result = next_fcntl(fd, command, argument);
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) copy_knowledge(fd, result);
  return result;
}
RNICSIM_EXPORT int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  return control(fd, command, argument);
}
RNICSIM_EXPORT int fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  return control(fd, command, argument);
}
RNICSIM_EXPORT int dup(int fd) noexcept {
  if (is_kept(fd)) return fail(EBADF);
  const int copy = next_dup(fd);
  copy_knowledge(fd, copy);
  return copy;
}
static void let_go_of_replaced(int fd, int copy) {
  if (fd != copy && next_fcntl(fd, F_GETFD, 0L) >= 0) let_go_of_event(copy);
}
RNICSIM_EXPORT int dup2(int fd, int copy) noexcept {
  if (is_kept(fd) || is_kept(copy)) return fail(EBADF);
  let_go_of_replaced(fd, copy);
  const int result = next_dup2(fd, copy);
  if (result >= 0 && fd != copy) copy_knowledge(fd, result);
  return result;
}
RNICSIM_EXPORT int dup3(int fd, int copy, int flags) noexcept {
  if (is_kept(fd) || is_kept(copy)) return fail(EBADF);
  let_go_of_replaced(fd, copy);
  const int result = next_dup3(fd, copy, flags);
  if (result >= 0) copy_knowledge(fd, result);
  return result;
}

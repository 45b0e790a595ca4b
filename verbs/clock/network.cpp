#include "verbs/clock/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "verbs/clock/attach.h"
#include "verbs/clock/descriptors.h"
#include "verbs/clock/known_descriptors.h"
#include "verbs/clock/next.h"
#include "verbs/clock/process.h"
#include "verbs/clock/turn.h"
#include "verbs/clock/unix_sockets.h"

RNICSIM_NEXT(socket);
RNICSIM_NEXT(bind);
RNICSIM_NEXT(listen);
RNICSIM_NEXT(connect);
RNICSIM_NEXT(accept4);
RNICSIM_NEXT(getsockname);
RNICSIM_NEXT(getpeername);
RNICSIM_NEXT(setsockopt);
RNICSIM_NEXT(getsockopt);
RNICSIM_NEXT(close);
RNICSIM_NEXT(close_range);
RNICSIM_NEXT(dup);
RNICSIM_NEXT(dup2);
RNICSIM_NEXT(dup3);
RNICSIM_NEXT(recv);
static const rnicsim::clock::Next<int(int, int, long)> next_fcntl{"fcntl64"};

namespace rnicsim::clock {
namespace {

// A socket of the simulated network.
std::optional<KnownDescriptor> find(int fd) {
  const auto descriptor = known(fd);
  return descriptor && descriptor->socket != 0 ? descriptor : std::nullopt;
}

// In real time the simulated network works too: only the clock is real.
abi::ThreadSlot* network_slot() {
  if (session() == nullptr) return nullptr;
  return simulated() ? simulated_slot() : own_slot();
}

abi::NetAddress to_net(const sockaddr* address) {
  abi::NetAddress result;
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    result.ip[10] = result.ip[11] = 0xff;
    memcpy(result.ip + 12, &v4->sin_addr, 4);
    result.port = ntohs(v4->sin_port);
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    memcpy(result.ip, &v6->sin6_addr, 16);
    result.port = ntohs(v6->sin6_port);
  }
  return result;
}

void from_net(const abi::NetAddress& net, int family, sockaddr* address, socklen_t* length) {
  sockaddr_storage full{};
  socklen_t bytes;
  if (family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&full);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(net.port);
    memcpy(&v4->sin_addr, net.ip + 12, 4);
    bytes = sizeof *v4;
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&full);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(net.port);
    memcpy(&v6->sin6_addr, net.ip, 16);
    bytes = sizeof *v6;
  }
  if (address == nullptr || length == nullptr) return;
  memcpy(address, &full, std::min(*length, bytes));
  *length = bytes;
}

bool is_v4(const abi::NetAddress& net) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return memcmp(net.ip, kPrefix, sizeof kPrefix) == 0;
}
bool is_loopback(const abi::NetAddress& net) {
  if (is_v4(net)) return net.ip[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(net.ip)) != 0;
}
bool is_wildcard(const abi::NetAddress& net) {
  if (is_v4(net)) return net.ip[12] == 0 && net.ip[13] == 0 && net.ip[14] == 0 && net.ip[15] == 0;
  return IN6_IS_ADDR_UNSPECIFIED(reinterpret_cast<const in6_addr*>(net.ip)) != 0;
}
bool same_prefix(const std::uint8_t* a, const std::uint8_t* b, unsigned bits) {
  const unsigned whole = bits / 8;
  if (memcmp(a, b, whole) != 0) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

// An address of the simulated network: the host itself, or a subnet of one of the hosts.
bool is_simulated(const abi::NetAddress& net) {
  if (is_loopback(net) || is_wildcard(net)) return true;
  return std::ranges::any_of(session()->hosts(), [&](const abi::HostEntry& host) {
    if (is_v4(net)) return same_prefix(net.ip + 12, host.ipv4, host.ipv4_prefix);
    return same_prefix(net.ip, host.ipv6, host.ipv6_prefix);
  });
}

bool is_inet(const sockaddr* address, socklen_t length) {
  if (address == nullptr) return false;
  return (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) ||
         (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6));
}

// A socket whose address lies outside: becomes a real one under the same number.
int make_real(int fd, const KnownDescriptor& stream) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int real = next_socket(stream.family, SOCK_STREAM | ((flags & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0), 0);
  if (real < 0) return -1;
  next_dup2(real, fd);
  next_close(real);
  forget(fd);
  return 0;
}

void put_address(abi::ThreadSlot& slot, const abi::NetAddress& net) {
  memcpy(slot.input, &net, sizeof net);
  slot.input_bytes = sizeof net;
}

int fail(int error) {
  errno = error;
  return -1;
}

int name_of(int fd, bool peer, sockaddr* address, socklen_t* length) {
  abi::ThreadSlot* slot = network_slot();
  const auto stream = find(fd);
  if (const int error = call(*slot, abi::Call::net_name, {stream->socket}); error != 0) return fail(error);
  abi::NetAddress names[2];
  memcpy(names, slot->output, sizeof names);
  if (peer && names[1].port == 0) return fail(ENOTCONN);
  from_net(names[peer ? 1 : 0], stream->family, address, length);
  return 0;
}

}  // namespace

bool is_stream(int fd) { return find(fd).has_value(); }

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int socket(int family, int type, int protocol) noexcept {
  abi::ThreadSlot* slot = network_slot();
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (slot == nullptr || (family != AF_INET && family != AF_INET6) || kind != SOCK_STREAM)
    return next_socket(family, type, protocol);
  int ends[2];
  if (::socketpair(AF_UNIX, type, 0, ends) != 0) return -1;
  charge(*slot, abi::CpuCost::system_call);
  send_descriptors({&ends[1], 1});
  const int error = call(*slot, abi::Call::net_socket, {1});
  next_close(ends[1]);
  if (error != 0 || !remember(ends[0], {.socket = std::uint32_t(slot->value), .family = family})) {
    next_close(ends[0]);
    return fail(error != 0 ? error : EMFILE);
  }
  return ends[0];
}

RNICSIM_EXPORT int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  const auto stream = find(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) {
    const UnixAddress leads(address, length);
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
  const auto stream = find(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) return next_listen(fd, backlog);
  charge(*slot, abi::CpuCost::system_call);
  const int error = call(*slot, abi::Call::net_listen, {stream->socket, std::uint64_t(std::max(backlog, 1))});
  return error != 0 ? fail(error) : 0;
}

RNICSIM_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  const auto stream = find(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr)
    return with_unix_name(address, length, [&] { return next_accept4(fd, address, length, flags); });
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
  if (!remember(accepted, {.socket = number, .family = stream->family})) {
    next_close(accepted);
    return fail(EMFILE);
  }
  if ((flags & SOCK_NONBLOCK) != 0) ::fcntl(accepted, F_SETFL, ::fcntl(accepted, F_GETFL) | O_NONBLOCK);
  from_net(peer, stream->family, address, length);
  return accepted;
}
RNICSIM_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) { return ::accept4(fd, address, length, 0); }

// A connection is made within the call, for a descriptor that does not block too.
RNICSIM_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  const auto stream = find(fd);
  abi::ThreadSlot* slot = network_slot();
  if (!stream || slot == nullptr) {
    const UnixAddress leads(address, length);
    return next_connect(fd, leads.get(), leads.length());
  }
  if (!is_inet(address, length)) return fail(EAFNOSUPPORT);
  const abi::NetAddress net = to_net(address);
  if (!is_simulated(net)) return make_real(fd, *stream) != 0 ? -1 : next_connect(fd, address, length);
  charge(*slot, abi::CpuCost::system_call);
  put_address(*slot, net);
  const int error = call(*slot, abi::Call::net_connect, {stream->socket, net.port});
  return error != 0 ? fail(error) : 0;
}

RNICSIM_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  if (!find(fd) || network_slot() == nullptr)
    return with_unix_name(address, length, [&] { return next_getsockname(fd, address, length); });
  return name_of(fd, false, address, length);
}
RNICSIM_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  if (!find(fd) || network_slot() == nullptr)
    return with_unix_name(address, length, [&] { return next_getpeername(fd, address, length); });
  return name_of(fd, true, address, length);
}

// Options of TCP and IP change nothing that the simulated network models.
RNICSIM_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (!find(fd) || level == SOL_SOCKET) return next_setsockopt(fd, level, name, value, length);
  return 0;
}
RNICSIM_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  if (!find(fd) || level == SOL_SOCKET) return next_getsockopt(fd, level, name, value, length);
  if (level == IPPROTO_TCP && name == TCP_NODELAY && *length >= sizeof(int)) {
    const int on = 1;
    memcpy(value, &on, sizeof on);
    *length = sizeof on;
    return 0;
  }
  return fail(ENOPROTOOPT);
}

RNICSIM_EXPORT int close(int fd) {
  // The descriptor through which this process is attached is not the program's to close.
  if (session() != nullptr && fd == session()->socket) return fail(EBADF);
  forget(fd);
  return next_close(fd);
}
RNICSIM_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (session() == nullptr) return next_close_range(first, last, flags);
  const auto kept = unsigned(session()->socket);
  if (kept < first || kept > last) return next_close_range(first, last, flags);
  if (kept > first && next_close_range(first, kept - 1, flags) != 0) return -1;
  return kept < last ? next_close_range(kept + 1, last, flags) : 0;
}
RNICSIM_EXPORT void closefrom(int first) noexcept { ::close_range(unsigned(std::max(first, 0)), ~0u, 0); }
// Its third argument, whatever it is, fits a word.
static int control(int fd, int command, long argument) {
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
  const int copy = next_dup(fd);
  copy_knowledge(fd, copy);
  return copy;
}
RNICSIM_EXPORT int dup2(int fd, int copy) noexcept {
  const int result = next_dup2(fd, copy);
  if (result >= 0 && fd != copy) copy_knowledge(fd, result);
  return result;
}
RNICSIM_EXPORT int dup3(int fd, int copy, int flags) noexcept {
  const int result = next_dup3(fd, copy, flags);
  if (result >= 0) copy_knowledge(fd, result);
  return result;
}

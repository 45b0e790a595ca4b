// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/netlink_socket.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/netlink/host_view.h"
#include "sim/host/kernel/netlink/netlink_answers.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(socket);
RNICSIM_NEXT(bind);
RNICSIM_NEXT(close);
RNICSIM_NEXT(connect);
RNICSIM_NEXT(getsockname);
RNICSIM_NEXT(recv);
RNICSIM_NEXT(recvmsg);
RNICSIM_NEXT(sendto);

namespace rnicsim::clock {
namespace {

// Most bytes of a send. A request has a page at most, and no answer depends on more.
constexpr std::size_t kMostRequestBytes = 32768;
constexpr sockaddr_nl kKernel{AF_NETLINK, 0, 0, 0};

int fail(int error) {
  errno = error;
  return -1;
}

int give_address(const sockaddr_nl& from, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) return fail(EFAULT);
  memcpy(address, &from, std::min<std::size_t>(*length, sizeof from));
  *length = sizeof from;
  return 0;
}

// Name of the UNIX socket. It differs from all names of programs, which begin with the host's tag.
class OwnName {
 public:
  OwnName(int protocol, std::uint32_t port) {
    address_.sun_family = AF_UNIX;
    const int text =
        snprintf(address_.sun_path + 1, sizeof address_.sun_path - 1, "%s%s%d.%u", kPrefix, host_tag(), protocol, port);
    length_ = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::size_t(text));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const { return length_; }

  struct Parts {
    int protocol = 0;
    std::uint32_t port = 0;
  };
  // nullopt: the socket has no such name.
  static std::optional<Parts> read(int fd) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    if (next_getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sun_family != AF_UNIX ||
        length <= offsetof(sockaddr_un, sun_path) || length > sizeof address || address.sun_path[0] != 0)
      return std::nullopt;
    std::string_view text(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
    for (const std::string_view part : {std::string_view(kPrefix), std::string_view(host_tag())}) {
      if (!text.starts_with(part)) return std::nullopt;
      text.remove_prefix(part.size());
    }
    Parts parts;
    const char* end = text.data() + text.size();
    const auto protocol = std::from_chars(text.data(), end, parts.protocol);
    if (protocol.ec != std::errc() || protocol.ptr == end || *protocol.ptr != '.') return std::nullopt;
    const auto port = std::from_chars(protocol.ptr + 1, end, parts.port);
    return port.ec == std::errc() && port.ptr == end ? std::optional(parts) : std::nullopt;
  }

 private:
  static constexpr char kPrefix[] = "rnicsim-netlink.";
  sockaddr_un address_{};
  socklen_t length_;
};

int bind_port(int fd, int protocol, std::uint32_t port) {
  const OwnName name(protocol, port);
  return next_bind(fd, name.get(), name.length()) == 0 && next_connect(fd, name.get(), name.length()) == 0 ? 0 : errno;
}

// As in the kernel: the first socket of a process gets the process's number as its port, others get numbers below
// -4096.
int bind_any_port(int fd, int protocol) {
  constexpr int kMostSockets = 4096;
  int error = bind_port(fd, protocol, std::uint32_t(::getpid()));
  for (int i = 0; i < kMostSockets && error == EADDRINUSE; ++i)
    error = bind_port(fd, protocol, std::uint32_t(-4097 - i));
  return error;
}

// Binds the socket to a port if it has none, because a socket that sends needs one. Returns 0 or errno.
int ensure_port(int fd, const KnownDescriptor& socket) {
  return OwnName::read(fd) ? 0 : bind_any_port(fd, socket.netlink->protocol);
}

NetlinkCaller caller_of(int fd, const KnownNetlink& netlink) {
  return {netlink.protocol, OwnName::read(fd).value_or(OwnName::Parts{}).port, netlink.has(NETLINK_GET_STRICT_CHK),
          netlink.has(NETLINK_CAP_ACK)};
}

class OwnQueue final : public NetlinkSink {
 public:
  explicit OwnQueue(int fd) : fd_(fd) {}
  bool put(NetlinkBytes datagram) override {
    return next_sendto(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0) ==
           ssize_t(datagram.size());
  }

 private:
  const int fd_;
};

// If a dump's mark is next in the queue, replaces the mark by the messages that it stands for. False: some found no
// room.
bool continue_dumps(int fd) {
  for (;;) {
    std::byte bytes[sizeof(DumpMark)];
    const ssize_t size = next_recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    const auto mark = size == ssize_t(sizeof bytes) ? read_mark(bytes) : std::nullopt;
    if (!mark) return true;
    next_recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    OwnQueue queue(fd);
    if (!continue_dump(own_view(), *mark, queue)) return false;
  }
}

// Multicast group of NETLINK_PKTINFO; 0 for an answer.
void put_packet_info(const KnownNetlink& netlink, msghdr& message) {
  const std::size_t room = message.msg_controllen;
  message.msg_controllen = 0;
  if (!netlink.has(NETLINK_PKTINFO) || message.msg_control == nullptr) return;
  if (room < CMSG_SPACE(sizeof(nl_pktinfo))) {
    message.msg_flags |= MSG_CTRUNC;
    return;
  }
  message.msg_controllen = CMSG_SPACE(sizeof(nl_pktinfo));
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_NETLINK;
  control->cmsg_type = NETLINK_PKTINFO;
  control->cmsg_len = CMSG_LEN(sizeof(nl_pktinfo));
  const nl_pktinfo info{};
  memcpy(CMSG_DATA(control), &info, sizeof info);
}

// Returns 0 or errno. The kernel is the only receiver.
int check_receiver(const void* address, socklen_t length) {
  sockaddr_nl to;
  if (length < sizeof to) return EINVAL;
  memcpy(&to, address, sizeof to);
  if (to.nl_family != AF_NETLINK) return EINVAL;
  if (to.nl_groups != 0) return EPERM;
  return to.nl_pid != 0 ? ECONNREFUSED : 0;
}

}  // namespace

std::optional<KnownDescriptor> find_netlink(int fd) {
  const auto descriptor = known(fd);
  return descriptor && descriptor->netlink ? descriptor : std::nullopt;
}

bool know_inherited_netlink(int fd) {
  const auto parts = OwnName::read(fd);
  return parts && remember(fd, {.netlink = KnownNetlink{.protocol = parts->protocol, .type = SOCK_RAW}});
}

int open_netlink(int type, int protocol) {
  constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int kind = type & ~kFlags;
  if (kind != SOCK_RAW && kind != SOCK_DGRAM) return fail(ESOCKTNOSUPPORT);
  if (!has_netlink_protocol(protocol)) return fail(EPROTONOSUPPORT);
  const int fd = next_socket(AF_UNIX, SOCK_DGRAM | (type & kFlags), 0);
  if (fd < 0) return -1;
  // The size does not depend on the machine's default.
  constexpr int kSendBuffer = 212'992;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  if (remember(fd, {.netlink = KnownNetlink{.protocol = protocol, .type = kind}})) return fd;
  next_close(fd);
  return fail(EMFILE);
}

// The request for multicast groups is ignored, because there are no events.
int bind_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length) {
  sockaddr_nl wanted;
  if (address == nullptr || length < sizeof wanted) return fail(EINVAL);
  memcpy(&wanted, address, sizeof wanted);
  if (wanted.nl_family != AF_NETLINK) return fail(EINVAL);
  if (const auto bound = OwnName::read(fd)) return bound->port == wanted.nl_pid ? 0 : fail(EINVAL);
  const int protocol = socket.netlink->protocol;
  const int error = wanted.nl_pid != 0 ? bind_port(fd, protocol, wanted.nl_pid) : bind_any_port(fd, protocol);
  return error != 0 ? fail(error) : 0;
}

int connect_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length) {
  if (address == nullptr || length < sizeof(sa_family_t)) return fail(EINVAL);
  if (address->sa_family == AF_UNSPEC) return 0;
  int error = check_receiver(address, length);
  if (error == 0) error = ensure_port(fd, socket);
  return error != 0 ? fail(error) : 0;
}

int name_netlink(int fd, sockaddr* address, socklen_t* length) {
  sockaddr_nl own = kKernel;
  if (const auto bound = OwnName::read(fd)) own.nl_pid = bound->port;
  return give_address(own, address, length);
}
int name_netlink_peer(sockaddr* address, socklen_t* length) { return give_address(kKernel, address, length); }

ssize_t send_netlink(int fd, const KnownDescriptor& socket, const msghdr& message, int flags) {
  if ((flags & MSG_OOB) != 0) return fail(EOPNOTSUPP);
  if (message.msg_iovlen > std::size_t(IOV_MAX)) return fail(EMSGSIZE);
  const std::size_t bytes = bytes_of({message.msg_iov, message.msg_iovlen});
  if (bytes == 0) return fail(ENODATA);
  if (bytes > kMostRequestBytes) return fail(EMSGSIZE);
  int error = message.msg_name != nullptr ? check_receiver(message.msg_name, message.msg_namelen) : 0;
  if (error == 0) error = ensure_port(fd, socket);
  if (error != 0) return fail(error);
  if (!prepare(fd, POLLOUT, true)) return -1;
  // Copied, because a request must not change after its check.
  auto* request = static_cast<std::byte*>(__builtin_alloca(bytes));
  std::byte* end = request;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i)
    end = std::copy_n(static_cast<const std::byte*>(message.msg_iov[i].iov_base), message.msg_iov[i].iov_len, end);
  OwnQueue queue(fd);
  const bool fits = answer_netlink(own_view(), caller_of(fd, *socket.netlink), {request, bytes}, queue);
  return fits ? ssize_t(bytes) : fail(ENOBUFS);
}

ssize_t receive_netlink(int fd, const KnownDescriptor& socket, msghdr& message, int flags) {
  if ((flags & MSG_OOB) != 0) return fail(EOPNOTSUPP);
  if ((flags & MSG_ERRQUEUE) != 0) return fail(EAGAIN);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  if (!continue_dumps(fd)) return fail(ENOBUFS);
  msghdr plain{};
  plain.msg_iov = message.msg_iov;
  plain.msg_iovlen = message.msg_iovlen;
  const ssize_t got = next_recvmsg(fd, &plain, flags);
  if (got < 0) return -1;
  message.msg_flags = plain.msg_flags;
  put_packet_info(*socket.netlink, message);
  if (message.msg_name != nullptr) {
    memcpy(message.msg_name, &kKernel, std::min<std::size_t>(message.msg_namelen, sizeof kKernel));
    message.msg_namelen = sizeof kKernel;
  }
  return got;
}

}  // namespace rnicsim::clock

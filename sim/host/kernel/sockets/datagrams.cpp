// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/datagrams.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include <algorithm>

#include "model/abi/net_address.h"
#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/sockets/inet_address.h"
#include "sim/host/kernel/sockets/real_sockets.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(bind);
RNICSIM_NEXT(connect);
RNICSIM_NEXT(recv);
RNICSIM_NEXT(recvmsg);
RNICSIM_NEXT(sendmsg);

namespace rnicsim::clock {
namespace {

constexpr auto kHeaderBytes = ssize_t(sizeof(abi::DatagramHeader));

int fail(int error) {
  errno = error;
  return -1;
}

int name_call(abi::Call code, const KnownDescriptor& socket, const abi::NetAddress& net) {
  abi::ThreadSlot* slot = network_slot();
  if (slot == nullptr) return ENOBUFS;
  charge(*slot, abi::CpuCost::system_call);
  put_address(*slot, net);
  return call(*slot, code, {socket.socket});
}

// True: the socket has no port on the simulated network yet, and can still become a real one.
bool is_unused(const KnownDescriptor& socket) {
  abi::ThreadSlot* slot = network_slot();
  if (slot == nullptr || call(*slot, abi::Call::dgram_name, {socket.socket}) != 0) return false;
  abi::NetAddress local;
  memcpy(&local, slot->output, sizeof local);
  return local.port == 0;
}

// The message with the header before its parts; `parts` has room for all of them.
msghdr framed(abi::DatagramHeader& header, const msghdr& message, iovec* parts) {
  parts[0] = {&header, sizeof header};
  std::copy_n(message.msg_iov, message.msg_iovlen, parts + 1);
  msghdr result{};
  result.msg_iov = parts;
  result.msg_iovlen = message.msg_iovlen + 1;
  return result;
}
bool can_be_framed(const msghdr& message) { return message.msg_iovlen < std::size_t(IOV_MAX); }
// Allocates on the stack, which may be small: messages seldom have many parts.
#define RNICSIM_FRAME_PARTS(message) static_cast<iovec*>(__builtin_alloca(((message).msg_iovlen + 1) * sizeof(iovec)))

// True: the message asks for segments (UDP_SEGMENT), which are not supported.
bool asks_for_segments(const msghdr& message) {
  auto* copy = const_cast<msghdr*>(&message);
  for (cmsghdr* control = CMSG_FIRSTHDR(copy); control != nullptr; control = CMSG_NXTHDR(copy, control))
    if (control->cmsg_level == IPPROTO_UDP) return true;
  return false;
}

// True: a socket of this family can use the address. An IPv6 socket accepts an IPv4 address as it is.
bool fits_family(const sockaddr* address, int family) { return family == AF_INET6 || address->sa_family == AF_INET; }

}  // namespace

std::optional<KnownDescriptor> find_datagrams(int fd) {
  const auto descriptor = find_socket(fd);
  return descriptor && descriptor->datagrams ? descriptor : std::nullopt;
}

int bind_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length) {
  if (!is_inet(address, length)) return fail(EINVAL);
  if (address->sa_family != socket.family) return fail(EAFNOSUPPORT);
  const abi::NetAddress net = to_net(address);
  if (is_group(net)) return fail(EADDRNOTAVAIL);
  if (!is_simulated(net)) {
    if (!is_unused(socket)) return fail(EINVAL);
    return make_real(fd, socket) != 0 ? -1 : next_bind(fd, address, length);
  }
  const int error = name_call(abi::Call::dgram_bind, socket, net);
  return error != 0 ? fail(error) : 0;
}

int connect_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length) {
  if (address != nullptr && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC) {
    const int error = name_call(abi::Call::dgram_disconnect, socket, {});
    return error != 0 ? fail(error) : 0;
  }
  if (!is_inet(address, length)) return fail(EINVAL);
  if (!fits_family(address, socket.family)) return fail(EAFNOSUPPORT);
  const abi::NetAddress net = to_net(address);
  if (is_group(net)) return fail(ENETUNREACH);
  if (!is_simulated(net)) {
    if (!is_unused(socket)) return fail(ENETUNREACH);
    return make_real(fd, socket) != 0 ? -1 : next_connect(fd, address, length);
  }
  const int error = name_call(abi::Call::dgram_connect, socket, net);
  return error != 0 ? fail(error) : 0;
}

ssize_t send_datagram(int fd, const KnownDescriptor& socket, const msghdr& message, int flags) {
  const std::size_t bytes = bytes_of({message.msg_iov, message.msg_iovlen});
  if (bytes > abi::kMostDatagramBytes || !can_be_framed(message)) return fail(EMSGSIZE);
  if ((flags & (MSG_OOB | MSG_MORE)) != 0) return fail(EOPNOTSUPP);
  if (asks_for_segments(message)) return fail(EINVAL);
  abi::DatagramHeader header;
  const auto* to = static_cast<const sockaddr*>(message.msg_name);
  if (to != nullptr) {
    if (!is_inet(to, message.msg_namelen)) return fail(EINVAL);
    if (!fits_family(to, socket.family)) return fail(EAFNOSUPPORT);
    header.address = to_net(to);
    if (header.address.port == 0) return fail(EINVAL);
    if (is_group(header.address)) return fail(ENETUNREACH);
    if (!is_simulated(header.address)) {
      if (!is_unused(socket)) return fail(ENETUNREACH);
      return make_real(fd, socket) != 0 ? -1 : next_sendmsg(fd, &message, flags);
    }
  }
  const int error = name_call(abi::Call::dgram_send, socket, header.address);
  if (error != 0) return fail(error);
  abi::ThreadSlot* slot = network_slot();
  memcpy(&header.address, slot->output, sizeof header.address);
  const bool waits = (flags & MSG_DONTWAIT) == 0 && simulated() && blocks(fd);
  if (waits && !wait_ready(*slot, fd, POLLOUT)) return -1;
  header.time = slot->now;
  const msghdr whole = framed(header, message, RNICSIM_FRAME_PARTS(message));
  const ssize_t sent = next_sendmsg(fd, &whole, (flags & MSG_DONTWAIT) | MSG_NOSIGNAL);
  return sent < 0 ? -1 : ssize_t(bytes);
}

ssize_t receive_datagram(int fd, const KnownDescriptor& socket, msghdr& message, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return fail(EAGAIN);
  if (!can_be_framed(message)) return fail(EMSGSIZE);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  abi::DatagramHeader header;
  msghdr whole = framed(header, message, RNICSIM_FRAME_PARTS(message));
  const ssize_t got = next_recvmsg(fd, &whole, flags);
  if (got < 0) return -1;
  if (got >= kHeaderBytes && header.error != 0) {
    if ((flags & MSG_PEEK) != 0) next_recv(fd, &header, sizeof header, MSG_DONTWAIT);
    return fail(int(header.error));
  }
  message.msg_controllen = 0;
  message.msg_flags = whole.msg_flags;
  if (got < kHeaderBytes) {  // the socket was shut down
    message.msg_namelen = 0;
    return 0;
  }
  from_net(header.address, socket.family, static_cast<sockaddr*>(message.msg_name), &message.msg_namelen);
  return got - kHeaderBytes;
}

int next_datagram_bytes(int fd) {
  abi::DatagramHeader header;
  const ssize_t whole = next_recv(fd, &header, sizeof header, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  return int(std::max(whole - kHeaderBytes, ssize_t(0)));
}

}  // namespace rnicsim::clock

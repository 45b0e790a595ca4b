// SPDX-License-Identifier: Apache-2.0
// The functions of <rdma/rsocket.h>.
#include <bits/cxxabi_forced.h>
#include <fcntl.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <cstdarg>
#include <new>

#include "verbs/rsockets/datagrams/datagram.h"
#include "verbs/rsockets/poll.h"
#include "verbs/rsockets/stream.h"
#include "verbs/rsockets/table.h"

namespace rnicsim::rsockets {

namespace {

// No C++ exception passes the C interface, except the unwinding of a cancelled thread. A negative result becomes -1
// and errno.
template <class Body>
Answer answered(Body&& body) {
  Answer answer;
  try {
    answer = body();
  } catch (const std::bad_alloc&) {
    answer = -ENOMEM;
  } catch (const __cxxabiv1::__forced_unwind&) {
    throw;
  } catch (...) {
    answer = -EIO;
  }
  if (answer >= 0) return answer;
  errno = int(-answer);
  return -1;
}

template <class Body>
Answer with_socket(int fd, Body&& body) {
  return answered([&]() -> Answer {
    const SocketRef socket = find_socket(fd);
    return socket == nullptr ? -EBADF : body(*socket);
  });
}

template <class Kind>
Answer open(int domain) {
  const auto made = std::make_shared<Kind>(domain);
  if (const int error = made->create()) return -error;
  add_socket(made);
  return made->fd();
}

Answer open(int domain, int type, int protocol) {
  if (domain != AF_INET && domain != AF_INET6) return -ENOTSUP;
  if (type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) return open<Stream>(domain);
  if (type == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP)) return open<Datagram>(domain);
  return -ENOTSUP;
}

Answer control(Socket& socket, int command, int argument) {
  switch (command) {
    case F_GETFL: return socket.flags();
    case F_SETFL: socket.set_flags(argument); return 0;
    default: return -ENOTSUP;
  }
}

Answer receive(int fd, std::span<const iovec> into, int flags, AddressOut source = {}) {
  return with_socket(fd, [&](Socket& socket) { return socket.receive(into, flags, source); });
}
Answer send(int fd, std::span<const iovec> from, int flags, const sockaddr* to = nullptr, socklen_t length = 0) {
  return with_socket(fd, [&](Socket& socket) { return socket.send(from, flags, to, length); });
}

int with_errno(int error) {
  errno = error;
  return -1;
}

std::span<const iovec> pieces_of(const iovec* pieces, int count) {
  return {pieces, count > 0 ? std::size_t(count) : 0};
}

}  // namespace

}  // namespace rnicsim::rsockets

using namespace rnicsim::rsockets;

extern "C" {

int rsocket(int domain, int type, int protocol) {
  return int(answered([&] { return open(domain, type, protocol); }));
}

int rbind(int fd, const sockaddr* address, socklen_t length) {
  if (address == nullptr) return with_errno(EINVAL);
  return int(with_socket(fd, [&](Socket& socket) { return socket.bind(*address, length); }));
}

int rlisten(int fd, int backlog) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.listen(backlog); }));
}

int raccept(int fd, sockaddr* address, socklen_t* length) {
  return int(with_socket(fd, [&](Socket& socket) -> Answer {
    SocketRef accepted;
    if (const Answer answer = socket.accept(accepted); answer < 0) return answer;
    if (address != nullptr) accepted->peer_address({address, length});
    const int number = accepted->fd();
    add_socket(std::move(accepted));
    return number;
  }));
}

int rconnect(int fd, const sockaddr* address, socklen_t length) {
  if (address == nullptr) return with_errno(EINVAL);
  return int(with_socket(fd, [&](Socket& socket) { return socket.connect(*address, length); }));
}

int rshutdown(int fd, int how) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.shutdown(how); }));
}

int rclose(int fd) {
  return int(answered([&]() -> Answer {
    const SocketRef socket = take_socket(fd);
    if (socket == nullptr) return -EBADF;
    socket->close();
    return 0;
  }));
}

ssize_t rrecv(int fd, void* buffer, size_t length, int flags) {
  const iovec piece{buffer, length};
  return receive(fd, {&piece, 1}, flags);
}
ssize_t rrecvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* source, socklen_t* source_length) {
  const iovec piece{buffer, length};
  return receive(fd, {&piece, 1}, flags, {source, source_length});
}
ssize_t rrecvmsg(int fd, msghdr* message, int flags) {
  if (message == nullptr) return with_errno(EINVAL);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return with_errno(ENOTSUP);
  const AddressOut source{static_cast<sockaddr*>(message->msg_name), &message->msg_namelen};
  const Answer answer = receive(fd, {message->msg_iov, message->msg_iovlen}, flags, source);
  if (answer >= 0) message->msg_flags = 0;
  return answer;
}
ssize_t rread(int fd, void* buffer, size_t length) { return rrecv(fd, buffer, length, 0); }
ssize_t rreadv(int fd, const iovec* pieces, int count) { return receive(fd, pieces_of(pieces, count), 0); }

ssize_t rsend(int fd, const void* buffer, size_t length, int flags) {
  const iovec piece{const_cast<void*>(buffer), length};
  return send(fd, {&piece, 1}, flags);
}
ssize_t rsendto(int fd, const void* buffer, size_t length, int flags, const sockaddr* to, socklen_t to_length) {
  const iovec piece{const_cast<void*>(buffer), length};
  return send(fd, {&piece, 1}, flags, to, to_length);
}
ssize_t rsendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr) return with_errno(EINVAL);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return with_errno(ENOTSUP);
  return send(fd, {message->msg_iov, message->msg_iovlen}, flags, static_cast<const sockaddr*>(message->msg_name),
              message->msg_namelen);
}
ssize_t rwrite(int fd, const void* buffer, size_t length) { return rsend(fd, buffer, length, 0); }
ssize_t rwritev(int fd, const iovec* pieces, int count) { return send(fd, pieces_of(pieces, count), 0); }

int rpoll(pollfd* descriptors, nfds_t count, int timeout) {
  return int(answered([&] { return poll_descriptors({descriptors, count}, timeout); }));
}
int rselect(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  return int(answered([&] { return select_descriptors(count, read, write, except, timeout); }));
}

int rgetpeername(int fd, sockaddr* address, socklen_t* length) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.peer_address({address, length}); }));
}
int rgetsockname(int fd, sockaddr* address, socklen_t* length) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.local_address({address, length}); }));
}

int rsetsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.set_option(level, name, value, length); }));
}
int rgetsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.get_option(level, name, value, length); }));
}

int rfcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const int argument = command == F_SETFL ? va_arg(list, int) : 0;
  va_end(list);
  return int(with_socket(fd, [&](Socket& socket) { return control(socket, command, argument); }));
}

off_t riomap(int fd, void* buffer, size_t length, int protection, int, off_t offset) {
  return with_socket(fd, [&](Socket& socket) { return socket.map(buffer, length, protection, offset); });
}
int riounmap(int fd, void* buffer, size_t length) {
  return int(with_socket(fd, [&](Socket& socket) { return socket.unmap(buffer, length); }));
}
size_t riowrite(int fd, const void* buffer, size_t length, off_t offset, int flags) {
  return size_t(with_socket(fd, [&](Socket& socket) { return socket.write_mapped(buffer, length, offset, flags); }));
}

}  // extern "C"

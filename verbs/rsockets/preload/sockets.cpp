// SPDX-License-Identifier: Apache-2.0
// Interposed functions of sockets and descriptors, from socket() to close().
#include <fcntl.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <fstream>

#include "verbs/rsockets/preload/exports.h"
#include "verbs/rsockets/preload/rules.h"
#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets::preload {

thread_local int Inside::depth = 0;

namespace {

int number_of(const char* variable) {
  const char* value = ::getenv(variable);
  return value != nullptr ? ::atoi(value) : 0;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> read = [] {
    std::ifstream file(std::string(kSettingsFolder) + "/preload_config");
    return parse_rules(file);
  }();
  return read;
}

// Sets the sizes that the environment gives.
void set_sizes(int rsocket) {
  const auto set = [&](int option, const char* variable) {
    const int value = number_of(variable);
    if (value != 0) rsetsockopt(rsocket, SOL_RDMA, option, &value, sizeof value);
  };
  set(RDMA_SQSIZE, "RS_SQ_SIZE");
  set(RDMA_RQSIZE, "RS_RQ_SIZE");
  set(RDMA_INLINE, "RS_INLINE");
}

// Rsockets that survive fork() are not supported. A program that requests them gets an error and a message, not
// another socket.
bool wants_fork() {
  static const bool wants = [] {
    if (number_of("RDMAV_FORK_SAFE") == 0) return false;
    ::fputs("librspreload: RDMAV_FORK_SAFE: connections across a fork are not supported; no stream is created\n",
            stderr);
    return true;
  }();
  return wants;
}

// Opens an rsocket behind a placeholder. Returns -1 and errno; ENOTSUP: not possible as an rsocket.
int open_rsocket(int domain, int type, int flags, int protocol) {
  const Inside inside;
  const int fd = rsocket(domain, type, protocol);
  if (fd < 0) return -1;
  set_sizes(fd);
  if ((flags & SOCK_NONBLOCK) != 0) rfcntl(fd, F_SETFL, O_NONBLOCK);
  const int placeholder = open_placeholder({Kind::rsocket, fd}, (flags & SOCK_CLOEXEC) != 0);
  if (placeholder >= 0) return placeholder;
  const int error = errno;
  rclose(fd);
  errno = error;
  return -1;
}

// Copies options that the program set before RDMA turned out to be unavailable.
void copy_options(int from, int to) {
  const int flags = rfcntl(from, F_GETFL);
  if (flags > 0) next_calls().fcntl(to, F_SETFL, flags);
  const auto copy = [&](int level, int name) {
    int value = 0;
    socklen_t length = sizeof value;
    if (rgetsockopt(from, level, name, &value, &length) == 0 && value != 0) {
      next_calls().setsockopt(to, level, name, &value, length);
    }
  };
  copy(SOL_SOCKET, SO_REUSEADDR);
  copy(IPPROTO_TCP, TCP_NODELAY);
}

// Replaces the rsocket behind `fd` by an ordinary socket. Returns the socket, or -1 and errno.
int fall_back(int fd, int rsocket) {
  const Inside inside;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (rgetsockname(rsocket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return -1;
  const int ordinary = next_calls().socket(address.ss_family, SOCK_STREAM, 0);
  if (ordinary < 0) return -1;
  copy_options(rsocket, ordinary);
  replace(fd, {Kind::ordinary, ordinary});
  rclose(rsocket);
  return ordinary;
}

bool is_stream(int rsocket) {
  // Only streams have TCP_MAXSEG.
  int size;
  socklen_t length = sizeof size;
  return rgetsockopt(rsocket, IPPROTO_TCP, TCP_MAXSEG, &size, &length) == 0;
}

}  // namespace

}  // namespace rnicsim::rsockets::preload

using namespace rnicsim::rsockets::preload;

RNICSIM_EXPORT int socket(int domain, int type, int protocol) noexcept {
  const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  const int kind = type & ~flags;
  const bool may = (domain == AF_INET || domain == AF_INET6) && (kind == SOCK_STREAM || kind == SOCK_DGRAM);
  if (!may || Inside::now() || !becomes_rsocket(rules(), program_invocation_short_name, domain, kind, protocol)) {
    return next_calls().socket(domain, type, protocol);
  }
  if (kind == SOCK_STREAM && wants_fork()) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const int made = open_rsocket(domain, kind, flags, protocol);
  return made >= 0 ? made : next_calls().socket(domain, type, protocol);
}

RNICSIM_EXPORT int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  return choose(
      fd, [&](int rsocket) { return rbind(rsocket, address, length); },
      [&](int ordinary) { return next_calls().bind(ordinary, address, length); });
}

RNICSIM_EXPORT int listen(int fd, int backlog) noexcept {
  return choose(
      fd, [&](int rsocket) { return rlisten(rsocket, backlog); },
      [&](int ordinary) { return next_calls().listen(ordinary, backlog); });
}

RNICSIM_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  return choose(
      fd,
      [&](int rsocket) {
        const int accepted = raccept(rsocket, address, length);
        if (accepted < 0) return -1;
        if ((flags & SOCK_NONBLOCK) != 0) rfcntl(accepted, F_SETFL, O_NONBLOCK);
        const int placeholder = open_placeholder({Kind::rsocket, accepted}, (flags & SOCK_CLOEXEC) != 0);
        if (placeholder < 0) {
          const int error = errno;
          rclose(accepted);
          errno = error;
        }
        return placeholder;
      },
      [&](int ordinary) { return next_calls().accept4(ordinary, address, length, flags); });
}
RNICSIM_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) { return ::accept4(fd, address, length, 0); }

// If the RDMA connection fails, connect() tries an ordinary socket.
RNICSIM_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  return choose(
      fd,
      [&](int rsocket) {
        if (rconnect(rsocket, address, length) == 0) return 0;
        if (errno == EINPROGRESS || errno == EALREADY || errno == EISCONN || errno == EINTR || !is_stream(rsocket)) {
          return -1;
        }
        const int ordinary = fall_back(fd, rsocket);
        return ordinary < 0 ? -1 : next_calls().connect(ordinary, address, length);
      },
      [&](int ordinary) { return next_calls().connect(ordinary, address, length); });
}

RNICSIM_EXPORT int shutdown(int fd, int how) noexcept {
  return choose(
      fd, [&](int rsocket) { return rshutdown(rsocket, how); },
      [&](int ordinary) { return next_calls().shutdown(ordinary, how); });
}

RNICSIM_EXPORT int close(int fd) {
  if (Inside::now() || !is_placeholder(fd)) return next_calls().close(fd);
  Behind last;
  const bool closes = drop(fd, last);
  next_calls().close(fd);
  if (!closes) return 0;
  const Inside inside;
  return last.kind == Kind::rsocket ? rclose(last.fd) : next_calls().close(last.fd);
}

RNICSIM_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  return choose(
      fd, [&](int rsocket) { return rgetpeername(rsocket, address, length); },
      [&](int ordinary) { return next_calls().getpeername(ordinary, address, length); });
}
RNICSIM_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  return choose(
      fd, [&](int rsocket) { return rgetsockname(rsocket, address, length); },
      [&](int ordinary) { return next_calls().getsockname(ordinary, address, length); });
}
RNICSIM_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  return choose(
      fd, [&](int rsocket) { return rsetsockopt(rsocket, level, name, value, length); },
      [&](int ordinary) { return next_calls().setsockopt(ordinary, level, name, value, length); });
}
RNICSIM_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  return choose(
      fd, [&](int rsocket) { return rgetsockopt(rsocket, level, name, value, length); },
      [&](int ordinary) { return next_calls().getsockopt(ordinary, level, name, value, length); });
}

// Makes a copy of a placeholder a placeholder, too.
static int shared(int fd, int copy) {
  if (copy >= 0) share(fd, copy);
  return copy;
}

// Descriptor flags and copies are those of the placeholder; file flags are those of the socket. Every kind of argument
// fits into a long.
static int control(int fd, int command, long argument) {
  if (Inside::now() || !is_placeholder(fd)) return next_calls().fcntl(fd, command, argument);
  switch (command) {
    case F_GETFD:
    case F_SETFD: return next_calls().fcntl(fd, command, argument);
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return shared(fd, next_calls().fcntl(fd, command, argument));
    default: break;
  }
  return choose(
      fd, [&](int rsocket) { return rfcntl(rsocket, command, int(argument)); },
      [&](int ordinary) { return next_calls().fcntl(ordinary, command, argument); });
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
  const bool ours = !Inside::now() && is_placeholder(fd);
  return ours ? shared(fd, next_calls().dup(fd)) : next_calls().dup(fd);
}
RNICSIM_EXPORT int dup2(int fd, int copy) noexcept {
  if (Inside::now() || fd == copy) return next_calls().dup2(fd, copy);
  if (is_placeholder(copy)) ::close(copy);
  const int made = next_calls().dup2(fd, copy);
  return is_placeholder(fd) ? shared(fd, made) : made;
}

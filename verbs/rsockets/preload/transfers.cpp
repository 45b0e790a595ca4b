// SPDX-License-Identifier: Apache-2.0
// Interposed functions for reading, writing and waiting.
#include <pthread.h>
#include <rdma/rsocket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include "verbs/rsockets/preload/exports.h"

using namespace rnicsim::rsockets::preload;

RNICSIM_EXPORT ssize_t recv(int fd, void* buffer, size_t length, int flags) {
  return choose(
      fd, [&](int rsocket) { return rrecv(rsocket, buffer, length, flags); },
      [&](int ordinary) { return next_calls().recv(ordinary, buffer, length, flags); });
}
RNICSIM_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* source, socklen_t* size) {
  return choose(
      fd, [&](int rsocket) { return rrecvfrom(rsocket, buffer, length, flags, source, size); },
      [&](int ordinary) { return next_calls().recvfrom(ordinary, buffer, length, flags, source, size); });
}
RNICSIM_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return choose(
      fd, [&](int rsocket) { return rrecvmsg(rsocket, message, flags); },
      [&](int ordinary) { return next_calls().recvmsg(ordinary, message, flags); });
}
RNICSIM_EXPORT ssize_t read(int fd, void* buffer, size_t length) {
  return choose(
      fd, [&](int rsocket) { return rread(rsocket, buffer, length); },
      [&](int ordinary) { return next_calls().read(ordinary, buffer, length); });
}
RNICSIM_EXPORT ssize_t readv(int fd, const iovec* pieces, int count) {
  return choose(
      fd, [&](int rsocket) { return rreadv(rsocket, pieces, count); },
      [&](int ordinary) { return next_calls().readv(ordinary, pieces, count); });
}
RNICSIM_EXPORT ssize_t send(int fd, const void* buffer, size_t length, int flags) {
  return choose(
      fd, [&](int rsocket) { return rsend(rsocket, buffer, length, flags); },
      [&](int ordinary) { return next_calls().send(ordinary, buffer, length, flags); });
}
RNICSIM_EXPORT ssize_t sendto(int fd, const void* buffer, size_t length, int flags, const sockaddr* to,
                              socklen_t size) {
  return choose(
      fd, [&](int rsocket) { return rsendto(rsocket, buffer, length, flags, to, size); },
      [&](int ordinary) { return next_calls().sendto(ordinary, buffer, length, flags, to, size); });
}
RNICSIM_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return choose(
      fd, [&](int rsocket) { return rsendmsg(rsocket, message, flags); },
      [&](int ordinary) { return next_calls().sendmsg(ordinary, message, flags); });
}
RNICSIM_EXPORT ssize_t write(int fd, const void* buffer, size_t length) {
  return choose(
      fd, [&](int rsocket) { return rwrite(rsocket, buffer, length); },
      [&](int ordinary) { return next_calls().write(ordinary, buffer, length); });
}
RNICSIM_EXPORT ssize_t writev(int fd, const iovec* pieces, int count) {
  return choose(
      fd, [&](int rsocket) { return rwritev(rsocket, pieces, count); },
      [&](int ordinary) { return next_calls().writev(ordinary, pieces, count); });
}

// Polls the targets of the descriptors.
static int poll_behind(pollfd* descriptors, nfds_t count, int timeout) {
  std::vector<pollfd> asked(descriptors, descriptors + count);
  for (pollfd& descriptor : asked) descriptor.fd = behind(descriptor.fd).fd;
  const Inside inside;
  const int ready = rpoll(asked.data(), count, timeout);
  for (nfds_t i = 0; i < count; ++i) descriptors[i].revents = asked[i].revents;
  return ready;
}

RNICSIM_EXPORT int poll(pollfd* descriptors, nfds_t count, int timeout) {
  const auto ours = [](const pollfd& descriptor) { return is_placeholder(descriptor.fd); };
  if (Inside::now() || std::none_of(descriptors, descriptors + count, ours)) {
    return next_calls().poll(descriptors, count, timeout);
  }
  return poll_behind(descriptors, count, timeout);
}

namespace {

bool in(int fd, const fd_set* set) { return set != nullptr && FD_ISSET(fd, set); }

int answer(const std::vector<pollfd>& descriptors, short asked, short found, fd_set* set) {
  if (set == nullptr) return 0;
  int count = 0;
  fd_set result{};
  for (const pollfd& descriptor : descriptors) {
    const bool wanted = asked != 0 ? (descriptor.events & asked) != 0 : in(descriptor.fd, set);
    if (!wanted || (descriptor.revents & found) == 0) continue;
    FD_SET(descriptor.fd, &result);
    ++count;
  }
  *set = result;
  return count;
}

std::optional<int> milliseconds(const timeval* timeout) {
  if (timeout == nullptr) return -1;
  if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return std::nullopt;
  const long long whole = (long long)(timeout->tv_sec) * 1000 + (timeout->tv_usec + 999) / 1000;
  return int(std::min<long long>(whole, std::numeric_limits<int>::max()));
}

}  // namespace

// Uses poll(): the number of a target may be too large for an fd_set.
RNICSIM_EXPORT int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  std::vector<pollfd> descriptors;
  bool ours = false;
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    const int events = (in(fd, read) ? POLLIN : 0) | (in(fd, write) ? POLLOUT : 0);
    if (events == 0 && !in(fd, except)) continue;
    descriptors.push_back({fd, short(events), 0});
    ours = ours || is_placeholder(fd);
  }
  if (!ours || Inside::now()) return next_calls().select(count, read, write, except, timeout);
  const auto timeout_ms = milliseconds(timeout);
  if (!timeout_ms) {
    errno = EINVAL;
    return -1;
  }
  if (poll_behind(descriptors.data(), descriptors.size(), *timeout_ms) < 0) return -1;
  return answer(descriptors, POLLIN, POLLIN | POLLHUP | POLLERR, read) +
         answer(descriptors, POLLOUT, POLLOUT | POLLERR, write) +
         answer(descriptors, 0, short(~(POLLIN | POLLOUT)), except);
}

// Copies through memory, as an rsocket does for all data. Bytes that the socket does not accept stay in the file.
static ssize_t send_file(int rsocket, int file, off_t* offset, size_t count) {
  std::array<char, 65536> bytes;
  off_t position = offset != nullptr ? *offset : ::lseek(file, 0, SEEK_CUR);
  if (position < 0) return -1;
  size_t done = 0;
  ssize_t failed = 0;
  while (done < count) {
    const ssize_t got = ::pread(file, bytes.data(), std::min(count - done, bytes.size()), position);
    if (got <= 0) {
      failed = got;
      break;
    }
    const ssize_t sent = rwrite(rsocket, bytes.data(), size_t(got));
    if (sent < 0) {
      failed = sent;
      break;
    }
    done += size_t(sent);
    position += sent;
    if (sent < got) break;
  }
  if (done == 0) return failed;
  if (offset != nullptr) {
    *offset = position;
  } else {
    ::lseek(file, position, SEEK_SET);
  }
  return ssize_t(done);
}

RNICSIM_EXPORT ssize_t sendfile(int to, int file, off_t* offset, size_t count) noexcept {
  return choose(
      to,
      [&](int rsocket) {
        int state;  // sendfile() is no cancellation point, but the calls inside are
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        const ssize_t sent = send_file(rsocket, file, offset, count);
        ::pthread_setcancelstate(state, nullptr);
        return sent;
      },
      [&](int ordinary) { return next_calls().sendfile(ordinary, file, offset, count); });
}
RNICSIM_EXPORT ssize_t sendfile64(int to, int file, off64_t* offset, size_t count) noexcept {
  return ::sendfile(to, file, offset, count);
}

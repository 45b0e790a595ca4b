// SPDX-License-Identifier: Apache-2.0
// Functions that programs compiled with _FORTIFY_SOURCE call. The C library's own would bypass the interposed
// functions.

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/host/shim/next.h"

extern "C" [[noreturn]] void __chk_fail() noexcept;

namespace {

void check(bool fits) {
  if (!fits) __chk_fail();
}

}  // namespace

RNICSIM_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t bytes, size_t room) {
  check(bytes <= room);
  return ::read(fd, buffer, bytes);
}
RNICSIM_EXPORT ssize_t __pread_chk(int fd, void* buffer, size_t bytes, off_t offset, size_t room) {
  check(bytes <= room);
  return ::pread(fd, buffer, bytes, offset);
}
RNICSIM_EXPORT ssize_t __pread64_chk(int fd, void* buffer, size_t bytes, off64_t offset, size_t room) {
  check(bytes <= room);
  return ::pread64(fd, buffer, bytes, offset);
}
RNICSIM_EXPORT ssize_t __recv_chk(int fd, void* buffer, size_t bytes, size_t room, int flags) {
  check(bytes <= room);
  return ::recv(fd, buffer, bytes, flags);
}
RNICSIM_EXPORT ssize_t __recvfrom_chk(int fd, void* buffer, size_t bytes, size_t room, int flags, sockaddr* from,
                                      socklen_t* length) {
  check(bytes <= room);
  return ::recvfrom(fd, buffer, bytes, flags, from, length);
}
RNICSIM_EXPORT int __poll_chk(pollfd* descriptors, nfds_t count, int timeout, size_t room) {
  check(count <= room / sizeof *descriptors);
  return ::poll(descriptors, count, timeout);
}
RNICSIM_EXPORT int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask,
                               size_t room) {
  check(count <= room / sizeof *descriptors);
  return ::ppoll(descriptors, count, timeout, mask);
}

RNICSIM_EXPORT ssize_t __readlink_chk(const char* path, char* buffer, size_t bytes, size_t room) {
  check(bytes <= room);
  return ::readlink(path, buffer, bytes);
}
RNICSIM_EXPORT ssize_t __readlinkat_chk(int folder, const char* path, char* buffer, size_t bytes, size_t room) {
  check(bytes <= room);
  return ::readlinkat(folder, path, buffer, bytes);
}
RNICSIM_EXPORT char* __realpath_chk(const char* path, char* resolved, size_t room) {
  check(room >= PATH_MAX);
  return ::realpath(path, resolved);
}
RNICSIM_EXPORT char* __getcwd_chk(char* buffer, size_t bytes, size_t room) {
  check(bytes <= room);
  return ::getcwd(buffer, bytes);
}

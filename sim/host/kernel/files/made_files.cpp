// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/made_files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>

#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/files/proc_files.h"
#include "sim/host/kernel/files/random.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(open);
RNICSIM_NEXT(fdopen);

namespace rnicsim::clock {
namespace {

bool is(const char* path, const char* name) { return strcmp(path, name) == 0; }
bool is_random_device(const char* path) { return is(path, "/dev/urandom") || is(path, "/dev/random"); }

ssize_t read_random(void*, char* buffer, size_t bytes) {
  draw(buffer, bytes);
  return ssize_t(bytes);
}
int close_random(void* descriptor) { return ::close(int(reinterpret_cast<std::intptr_t>(descriptor))); }

// The C library fills a stream's buffer without the interposed read(): the stream gets a function for that. It also
// gets the descriptor, for programs that read past the stream (C++ streams do).
FILE* random_stream(int fd, const char* mode) {
  const cookie_io_functions_t functions{read_random, nullptr, nullptr, close_random};
  FILE* stream = ::fopencookie(reinterpret_cast<void*>(std::intptr_t(fd)), mode, functions);
  if (stream != nullptr) stream->_fileno = fd;
  return stream;
}

}  // namespace

int open_made_file(const char* path, int flags) {
  if (path == nullptr || path[0] != '/' || simulated_slot() == nullptr || (flags & O_ACCMODE) == O_WRONLY) return -1;
  if (const int fd = open_proc_file(path, flags); fd >= 0) return fd;
  if (!is_random_device(path)) return -1;
  const int fd = next_open(path, flags, 0);
  if (fd >= 0) remember(fd, {.is_random = true});
  return fd;
}

FILE* open_made_stream(const char* path, const char* mode) {
  if (path == nullptr || path[0] != '/' || simulated_slot() == nullptr || mode[0] != 'r') return nullptr;
  const int fd = open_made_file(path, strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
  return fd >= 0 ? ::fdopen(fd, mode) : nullptr;
}

void take_standard_input() {
  if (!is_random(STDIN_FILENO)) return;
  if (FILE* stream = random_stream(STDIN_FILENO, "r")) stdin = stream;
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT FILE* fdopen(int fd, const char* mode) noexcept {
  const bool draws = is_random(fd) && simulated_slot() != nullptr && mode[0] == 'r';
  return draws ? random_stream(fd, mode) : next_fdopen(fd, mode);
}

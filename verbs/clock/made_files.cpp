#include "verbs/clock/made_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "verbs/clock/known_descriptors.h"
#include "verbs/clock/next.h"
#include "verbs/clock/random.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(open);
RNICSIM_NEXT(read);
RNICSIM_NEXT(write);
RNICSIM_NEXT(close);
RNICSIM_NEXT(fdopen);

namespace rnicsim::clock {
namespace {

bool is(const char* path, const char* name) { return strcmp(path, name) == 0; }
bool is_random_device(const char* path) { return is(path, "/dev/urandom") || is(path, "/dev/random"); }

// A file of nobody else's that holds this text.
int file_of(const char* text, std::size_t length, int flags) {
  const int fd = ::memfd_create("proc", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (fd < 0) return -1;
  for (std::size_t done = 0; done < length;) {
    const ssize_t part = next_write(fd, text + done, length - done);
    if (part <= 0) break;
    done += std::size_t(part);
  }
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

timespec since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time;
}

int open_uptime(int flags) {
  const timespec time = since_boot();
  const auto seconds = static_cast<long long>(time.tv_sec);
  const long hundredths = time.tv_nsec / 10'000'000;
  char text[64];
  const int length =
      snprintf(text, sizeof text, "%lld.%02ld %lld.%02ld\n", seconds, hundredths, seconds, hundredths);
  return file_of(text, std::size_t(length), flags);
}

// The machine's own, but for the boot's date.
int open_stat(int flags) {
  static char text[256 * 1024];
  const int real = next_open("/proc/stat", O_RDONLY | O_CLOEXEC, 0);
  if (real < 0) return -1;
  std::size_t length = 0;
  for (ssize_t got; length < sizeof text - 64 && (got = next_read(real, text + length, sizeof text - 64 - length)) > 0;)
    length += std::size_t(got);
  next_close(real);
  text[length] = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (char* line = strstr(text, "\nbtime "); line != nullptr) {
    char* end = strchr(line + 1, '\n');
    char made[64];
    const auto boot = static_cast<long long>(now.tv_sec - since_boot().tv_sec);
    const int bytes = snprintf(made, sizeof made, "\nbtime %lld", boot);
    if (end != nullptr) {
      memmove(line + bytes, end, length - std::size_t(end - text) + 1);
      memcpy(line, made, std::size_t(bytes));
      length = strlen(text);
    }
  }
  return file_of(text, length, flags);
}

ssize_t read_random(void*, char* buffer, size_t bytes) {
  draw(buffer, bytes);
  return ssize_t(bytes);
}
int close_random(void* descriptor) { return ::close(int(reinterpret_cast<std::intptr_t>(descriptor))); }

// The C library fills its buffer behind our back, so that it is given a function for that; and the descriptor, for
// those who read past it (C++ streams do).
FILE* random_stream(int fd, const char* mode) {
  const cookie_io_functions_t functions{read_random, nullptr, nullptr, close_random};
  FILE* stream = ::fopencookie(reinterpret_cast<void*>(std::intptr_t(fd)), mode, functions);
  if (stream != nullptr) stream->_fileno = fd;
  return stream;
}

}  // namespace

int open_made_file(const char* path, int flags) {
  if (path == nullptr || path[0] != '/' || simulated_slot() == nullptr || (flags & O_ACCMODE) == O_WRONLY) return -1;
  if (is(path, "/proc/uptime")) return open_uptime(flags);
  if (is(path, "/proc/stat")) return open_stat(flags);
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

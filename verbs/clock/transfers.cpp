// sendfile() and splice(): what they wait for, room or something to take, is in simulated time.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "verbs/clock/descriptors.h"
#include "verbs/clock/network.h"
#include "verbs/clock/next.h"
#include "verbs/clock/raw_call.h"
#include "verbs/clock/session.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(sendfile);
RNICSIM_NEXT(splice);

namespace rnicsim::clock {
namespace {

bool may_wait(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}
// Of a file with pages.
std::int64_t size_of(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && S_ISREG(file.st_mode) ? file.st_size : 0;
}

// A part of a file, for a moment. Nobody else gets to know of the mapping.
class Window {
 public:
  Window(int fd, std::int64_t offset, std::size_t bytes)
      : skipped_(std::size_t(offset) % kPage),
        bytes_(skipped_ + bytes),
        start_(raw_call(SYS_mmap, nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd, offset - std::int64_t(skipped_))) {}
  ~Window() {
    if (is_there()) raw_call(SYS_munmap, start_, bytes_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  bool is_there() const { return start_ > 0; }
  const void* data() const { return reinterpret_cast<const char*>(start_) + skipped_; }

 private:
  static constexpr std::size_t kPage = 4096;
  const std::size_t skipped_;
  const std::size_t bytes_;
  const long start_;
};

// As much of the file as a write takes.
ssize_t write_file(int out, int in, std::int64_t offset, std::size_t bytes) {
  const Window window(in, offset, bytes);
  return window.is_there() ? ::write(out, window.data(), bytes) : -1;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t sendfile(int out, int in, off_t* offset, size_t count) noexcept {
  const std::int64_t begin = offset != nullptr ? *offset : raw_call(SYS_lseek, in, 0, SEEK_CUR);
  const std::int64_t left = size_of(in) - begin;
  if (simulated_slot() == nullptr || !may_wait(out) || begin < 0 || left <= 0)
    return next_sendfile(out, in, offset, count);
  const auto bytes = std::size_t(std::min<std::int64_t>(left, std::int64_t(std::min<size_t>(count, 0x7ffff000))));
  if (bytes == 0) return 0;
  const ssize_t sent = write_file(out, in, begin, bytes);
  if (sent <= 0) return sent;
  if (offset != nullptr) {
    *offset = begin + sent;
  } else {
    raw_call(SYS_lseek, in, begin + sent, SEEK_SET);
  }
  return sent;
}
RNICSIM_EXPORT ssize_t sendfile64(int out, int in, off64_t* offset, size_t count) noexcept {
  return ::sendfile(out, in, offset, count);
}

// What is there goes, and there may be more.
RNICSIM_EXPORT ssize_t splice(int in, off64_t* in_offset, int out, off64_t* out_offset, size_t bytes, unsigned flags) {
  const bool dont_wait = (flags & SPLICE_F_NONBLOCK) != 0;
  if (simulated_slot() == nullptr || bytes == 0) return next_splice(in, in_offset, out, out_offset, bytes, flags);
  if (may_wait(in) && !prepare(in, POLLIN, dont_wait)) return -1;
  if (may_wait(out) && !prepare(out, POLLOUT, dont_wait)) return -1;
  // A socket that is ready has room for so many, and would wait for more.
  if (is_stream_socket(out)) bytes = std::min<size_t>(bytes, PIPE_BUF);
  return settle_write(out, next_splice(in, in_offset, out, out_offset, bytes, flags | SPLICE_F_NONBLOCK));
}

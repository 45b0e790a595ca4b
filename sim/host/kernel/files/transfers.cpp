// SPDX-License-Identifier: Apache-2.0
// sendfile() and splice(): waits for room or for data are in simulated time.

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

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sendfile);
RNICSIM_NEXT(splice);

namespace rnicsim::clock {
namespace {

// Size in bytes of a regular file; 0: another file.
std::int64_t size_of(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && S_ISREG(file.st_mode) ? file.st_size : 0;
}

// Maps a part of a file for a moment. The mapping is not reported to the simulator.
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

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

// (sendfile() is no cancellation point.)
RNICSIM_EXPORT ssize_t sendfile(int out, int in, off_t* offset, size_t count) noexcept {
  const std::int64_t begin = offset != nullptr ? *offset : raw_call(SYS_lseek, in, 0, SEEK_CUR);
  const std::int64_t left = size_of(in) - begin;
  if (simulated_slot() == nullptr || !is_pipe_or_socket(out) || begin < 0 || left <= 0 || count == 0)
    return next_sendfile(out, in, offset, count);
  constexpr std::int64_t kMost = 0x7ffff000;
  const auto bytes = std::size_t(std::min({left, std::int64_t(std::min<size_t>(count, kMost))}));
  const Window window(in, begin, bytes);
  if (!window.is_there()) return next_sendfile(out, in, offset, count);
  const Uncancelled uncancelled;
  const ssize_t sent = ::write(out, window.data(), bytes);
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

// Moves the bytes that are there, and does not wait for more. Waits again if another thread took the bytes or the room
// meanwhile.
RNICSIM_EXPORT ssize_t splice(int in, off64_t* in_offset, int out, off64_t* out_offset, size_t bytes, unsigned flags) {
  if (simulated_slot() == nullptr || bytes == 0) return next_splice(in, in_offset, out, out_offset, bytes, flags);
  const bool dont_wait = (flags & SPLICE_F_NONBLOCK) != 0;
  const bool in_waits = is_pipe_or_socket(in), out_waits = is_pipe_or_socket(out), to_socket = is_stream_socket(out);
  const bool waits = !dont_wait && (!in_waits || blocks(in)) && (!out_waits || blocks(out));
  // A socket that is ready has room for PIPE_BUF bytes, and would wait for more, whatever the flags are.
  if (to_socket) bytes = std::min<size_t>(bytes, PIPE_BUF);
  for (;;) {
    if (in_waits && !prepare(in, POLLIN, dont_wait)) return -1;
    if (out_waits && !prepare(out, POLLOUT, dont_wait && !to_socket)) return -1;
    if (const int error = to_socket ? take_error(out) : 0; error != 0) {
      errno = error;
      return -1;
    }
    const ssize_t moved = next_splice(in, in_offset, out, out_offset, bytes, flags | SPLICE_F_NONBLOCK);
    if (moved >= 0) return settle_end(in, bytes, settle_write(out, moved));
    if (errno != EAGAIN || !waits) return -1;
  }
}

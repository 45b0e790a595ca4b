// Opening a FIFO waits until somebody has its other end: in simulated time.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "verbs/clock/turn.h"

namespace rnicsim::clock {

// Whether open(2) with these flags would wait for the other end. A path as the real kernel takes it.
bool waits_for_other_end(int folder, const char* path, int flags);

// Looks again and again, less often each time.
class OtherEnd {
 public:
  // False: a signal came, and errno says EINTR.
  bool look_later();
  static bool has_writer(int reader);
  static int opened(int fd, int flags);  // it blocks from now on, as was asked for

 private:
  std::uint64_t pause_ = 0;
};

// `open` opens the path with the flags that it is given.
template <class Open>
int open_fifo(int flags, Open open) {
  OtherEnd other;
  int fd = open(flags | O_NONBLOCK);
  if ((flags & O_ACCMODE) == O_WRONLY) {
    for (; fd < 0 && errno == ENXIO; fd = open(flags | O_NONBLOCK))
      if (!other.look_later()) return -1;
    return OtherEnd::opened(fd, flags);
  }
  const auto close_and_say_so = [&] {
    ::close(fd);
    errno = EINTR;
    return -1;
  };
  try {
    while (fd >= 0 && !OtherEnd::has_writer(fd))
      if (!other.look_later()) return close_and_say_so();
  } catch (...) {  // the thread is cancelled
    close_and_say_so();
    throw;
  }
  return OtherEnd::opened(fd, flags);
}

}  // namespace rnicsim::clock

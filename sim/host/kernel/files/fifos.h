// SPDX-License-Identifier: Apache-2.0
// Opening a FIFO waits in simulated time until its other end is open.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "sim/host/time/turn.h"

namespace rnicsim::clock {

// True: open(2) with these flags would wait for the other end. The path is one for the real kernel.
bool waits_for_other_end(int folder, const char* path, int flags);

// Repeats the check whether the other end is open, with pauses that grow from 1 us to 1 ms.
class OtherEnd {
 public:
  // Waits for the next check. False: a signal came, errno is EINTR.
  bool look_later();
  static bool has_writer(int reader);
  static int opened(int fd, int flags);  // clears O_NONBLOCK

 private:
  std::uint64_t pause_ = 0;
};

// `open` opens the path with the flags of its argument.
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

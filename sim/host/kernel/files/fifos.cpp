// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/fifos.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "sim/host/shim/raw_call.h"
#include "sim/host/time/timeline.h"

namespace rnicsim::clock {

bool waits_for_other_end(int folder, const char* path, int flags) {
  if (simulated_slot() == nullptr || (flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) != 0) return false;
  if ((flags & O_ACCMODE) != O_RDONLY && (flags & O_ACCMODE) != O_WRONLY) return false;
  struct stat file {};
  return raw_call(SYS_newfstatat, folder, path, &file, 0) == 0 && S_ISFIFO(file.st_mode);
}

bool OtherEnd::look_later() {
  pause_ = std::clamp(2 * pause_, kMicrosecond, kMillisecond);
  abi::ThreadSlot* slot = simulated_slot();
  charge(*slot, abi::CpuCost::system_call);
  const int error = call_cancellably(*slot, abi::Call::sleep, {after(slot->now, pause_)});
  if (error != EINTR || restarts_after_signal()) return true;
  errno = EINTR;
  return false;
}

// Also true if a writer has been there and closed the FIFO, or left bytes in it.
bool OtherEnd::has_writer(int reader) {
  int bytes = 0;
  pollfd end{reader, POLLIN, 0};
  const bool has_something = raw_call(SYS_ioctl, reader, FIONREAD, &bytes) == 0 && bytes > 0;
  if (has_something || (raw_call(SYS_poll, &end, 1, 0) == 1 && (end.revents & POLLHUP) != 0)) return true;
  char byte;
  return raw_call(SYS_read, reader, &byte, 1) != 0;  // EAGAIN: there is a writer; 0: there has been none
}

int OtherEnd::opened(int fd, int flags) {
  if (fd >= 0) raw_call(SYS_fcntl, fd, F_SETFL, flags & ~O_NONBLOCK);
  return fd;
}

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Locks on files. The real kernel grants them, but a thread must not wait there: the thread tries again, with growing
// pauses.

#include "sim/host/kernel/files/file_locks.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/kernel/processes/other_processes.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(flock);
RNICSIM_NEXT(lockf);

namespace rnicsim::clock {
namespace {

// `attempt` tries the lock without waiting; `taken` is its errno if another has the lock.
template <class Attempt>
int lock(abi::ThreadSlot& slot, int taken, Attempt attempt) {
  for (std::uint64_t pause = kMicrosecond;; pause = std::min(2 * pause, kMillisecond)) {
    charge(slot, abi::CpuCost::system_call);
    sync(slot);
    const int result = attempt();
    if (result == 0 || (errno != taken && errno != EAGAIN)) return result;
    if (call(slot, abi::Call::sleep, {after(slot.now, pause)}) != EINTR || restarts_after_signal()) continue;
    errno = EINTR;
    return -1;
  }
}

int find_holder(abi::ThreadSlot& slot, int fd, int command, struct flock* record) {
  charge(slot, abi::CpuCost::system_call);
  sync(slot);
  const auto result = int(checked_call(SYS_fcntl, fd, command, record));
  if (result == 0 && record->l_type != F_UNLCK && record->l_pid > 0) record->l_pid = number_of_process(record->l_pid);
  return result;
}

}  // namespace

std::optional<int> control_lock(int fd, int command, struct flock* record) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return std::nullopt;
  if (command == F_GETLK || command == F_OFD_GETLK) return find_holder(*slot, fd, command, record);
  if (command != F_SETLKW && command != F_OFD_SETLKW) return std::nullopt;
  const int at_once = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
  return lock(*slot, EACCES, [&] {
    cancellation_point();
    return int(checked_call(SYS_fcntl, fd, at_once, record));
  });
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int flock(int fd, int operation) noexcept {
  rnicsim::abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || (operation & LOCK_NB) != 0) return next_flock(fd, operation);
  return lock(*slot, EWOULDBLOCK, [&] { return next_flock(fd, operation | LOCK_NB); });
}
RNICSIM_EXPORT int lockf(int fd, int operation, off_t length) {
  rnicsim::abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || operation != F_LOCK) return next_lockf(fd, operation, length);
  return lock(*slot, EACCES, [&] {
    cancellation_point();
    return next_lockf(fd, F_TLOCK, length);
  });
}
RNICSIM_EXPORT int lockf64(int fd, int operation, off64_t length) { return ::lockf(fd, operation, length); }

#include "verbs/clock/other_processes.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs/clock/attach.h"
#include "verbs/clock/next.h"
#include "verbs/clock/turn.h"
#include "verbs/port/raw_call.h"

RNICSIM_NEXT(process_vm_readv);
RNICSIM_NEXT(process_vm_writev);

namespace rnicsim::clock {

std::optional<pid_t> find_process(pid_t virtual_pid) {
  if (virtual_pid == pid_t(session()->header().virtual_pid)) return pid_t(raw_call(SYS_getpid));
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || call(*slot, abi::Call::find_process, {std::uint64_t(virtual_pid)}) != 0) return std::nullopt;
  return pid_t(slot->value);
}

namespace {

// `copy` gets the real pid.
template <class Copy>
ssize_t copy_of(pid_t pid, Copy copy) {
  const auto real = simulated() ? find_process(pid) : std::optional(pid);
  if (real) return copy(*real);
  errno = ESRCH;
  return -1;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

// Copies from and into memory of another process (MPI libraries do, within a host).
RNICSIM_EXPORT ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                        unsigned long remote_count, unsigned long flags) noexcept {
  return copy_of(pid, [&](pid_t real) {
    return next_process_vm_readv(real, local, local_count, remote, remote_count, flags);
  });
}
RNICSIM_EXPORT ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                         unsigned long remote_count, unsigned long flags) noexcept {
  return copy_of(pid, [&](pid_t real) {
    return next_process_vm_writev(real, local, local_count, remote, remote_count, flags);
  });
}

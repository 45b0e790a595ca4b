// SPDX-License-Identifier: Apache-2.0
// Functions of the C library that only the real kernel can answer. The call is noted, because it ends reproducibility
// (docs/system-calls.md, End reproducibility).

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/session.h"

using namespace rnicsim::clock;

// Interposes a function by its name in the library. It has six words, the most that a system call has, and passes them
// on unchanged.
#define RNICSIM_NOTED(name)                                                                  \
  static const Next<long(long, long, long, long, long, long)> next_##name{#name};            \
  RNICSIM_EXPORT long own_##name(long a, long b, long c, long d, long e, long f) asm(#name); \
  long own_##name(long a, long b, long c, long d, long e, long f) {                          \
    note_real_call(SYS_##name);                                                              \
    return next_##name(a, b, c, d, e, f);                                                    \
  }

RNICSIM_NOTED(acct)
RNICSIM_NOTED(adjtimex)
RNICSIM_NOTED(chroot)
RNICSIM_NOTED(clock_adjtime)
RNICSIM_NOTED(clock_settime)
RNICSIM_NOTED(epoll_pwait2)
RNICSIM_NOTED(fanotify_init)
RNICSIM_NOTED(inotify_init)
RNICSIM_NOTED(inotify_init1)
RNICSIM_NOTED(ioperm)
RNICSIM_NOTED(iopl)
RNICSIM_NOTED(mincore)
RNICSIM_NOTED(mount)
RNICSIM_NOTED(open_by_handle_at)
RNICSIM_NOTED(pidfd_getfd)
RNICSIM_NOTED(pidfd_send_signal)
RNICSIM_NOTED(preadv2)
RNICSIM_NOTED(process_madvise)
RNICSIM_NOTED(process_mrelease)
RNICSIM_NOTED(pwritev2)
RNICSIM_NOTED(quotactl)
RNICSIM_NOTED(reboot)
RNICSIM_NOTED(remap_file_pages)
RNICSIM_NOTED(setdomainname)
RNICSIM_NOTED(sethostname)
RNICSIM_NOTED(setns)
RNICSIM_NOTED(settimeofday)
RNICSIM_NOTED(swapoff)
RNICSIM_NOTED(swapon)
RNICSIM_NOTED(umount2)
RNICSIM_NOTED(unshare)
RNICSIM_NOTED(vhangup)
RNICSIM_NOTED(vmsplice)

RNICSIM_NEXT(name_to_handle_at);
RNICSIM_EXPORT int name_to_handle_at(int folder, const char* path, file_handle* handle, int* mount,
                                     int flags) noexcept {
  note_real_call(SYS_name_to_handle_at);
  const Last last = (flags & AT_SYMLINK_FOLLOW) != 0 ? Last::followed : Last::itself;
  return next_name_to_handle_at(folder, HostPath(folder, path, last).get(), handle, mount, flags);
}

RNICSIM_NEXT(ptrace);

// PTRACE_TRACEME is refused: a traced process stops at its next signal, such as that of a spin check, and no tracer
// would continue it.
RNICSIM_EXPORT long ptrace(__ptrace_request request, ...) noexcept {
  if (simulated() && request == PTRACE_TRACEME) {
    errno = EPERM;
    return -1;
  }
  va_list list;
  va_start(list, request);
  const auto process = va_arg(list, pid_t);
  void* const address = va_arg(list, void*);
  void* const data = va_arg(list, void*);
  va_end(list);
  note_real_call(SYS_ptrace);
  return next_ptrace(request, process, address, data);
}

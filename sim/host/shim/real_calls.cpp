// SPDX-License-Identifier: Apache-2.0
// syscall(). Programs use it for system calls for which the C library has no function, or only a recent one. Calls that
// are simulated by name are simulated by number, too.

#include "sim/host/shim/real_calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/shim/call_table.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

// Calls that take no time and tell nothing of the real machine: docs/system-calls.md has the reasons.
constexpr long kHarmless[] = {
    SYS_mprotect,
    SYS_brk,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_mbind,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_msync,
    SYS_mlockall,
    SYS_munlockall,
    SYS_memfd_create,
    SYS_membarrier,
    SYS_rt_sigreturn,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_setuid,
    SYS_setgid,
    SYS_umask,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_prctl,
    SYS_arch_prctl,
    SYS_personality,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_epoll_create,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_eventfd,
    SYS_eventfd2,
    SYS_pipe,
    SYS_pipe2,
    SYS_lseek,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_fstat,
    SYS_fchmod,
    SYS_fchown,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_sync_file_range,
    SYS_syncfs,
    SYS_readahead,
    SYS_getdents,
    SYS_getdents64,
    SYS_fchdir,
    SYS_socketpair,
    SYS_fadvise64,
    SYS_copy_file_range,
    SYS_tee,
    SYS_seccomp,
    SYS_landlock_create_ruleset,
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_pkey_mprotect,
    SYS_exit,
    SYS_mq_getsetattr,
};

// Calls that the real kernel answers about one of the host's files: index of the path's word, whether the word before
// it is a folder, and what the call does with a link.
struct PathCall {
  long number;
  int path;
  bool has_folder;
  Last last;
};
constexpr PathCall kPathCalls[] = {
    {SYS_openat2, 1, true, Last::followed},     {SYS_faccessat2, 1, true, Last::followed},
    {SYS_futimesat, 1, true, Last::followed},   {SYS_setxattr, 0, false, Last::followed},
    {SYS_lsetxattr, 0, false, Last::itself},    {SYS_listxattr, 0, false, Last::followed},
    {SYS_llistxattr, 0, false, Last::seen},     {SYS_removexattr, 0, false, Last::followed},
    {SYS_lremovexattr, 0, false, Last::itself}, {SYS_name_to_handle_at, 1, true, Last::itself},
};

// Makes the call with the path as it leads on the host. A path that must not leave its folder (openat2() with
// RESOLVE_BENEATH and its like) stays.
long with_own_path(const PathCall& call, const Words& given) {
  const auto* how = reinterpret_cast<const open_how*>(given[2]);
  const bool is_bound = call.number == SYS_openat2 && how != nullptr && how->resolve != 0;
  const HostPath path(call.has_folder ? int(given[0]) : AT_FDCWD,
                      is_bound ? nullptr : reinterpret_cast<const char*>(given[call.path]), call.last);
  Words w;
  std::ranges::copy(given, w);
  if (path.get() != nullptr) w[call.path] = word(path.get());
  return checked_call(call.number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

bool is_harmless(long number) { return std::ranges::find(kHarmless, number) != std::end(kHarmless); }

long in_real_kernel(long number, const Words& w) {
  if (!is_harmless(number)) note_real_call(number);
  const auto* with_path = std::ranges::find(kPathCalls, number, &PathCall::number);
  if (with_path != std::end(kPathCalls)) return with_own_path(*with_path, w);
  return checked_call(number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

// Makes the call with the real number in place of the virtual number of a thread or process.
long with_real_id_at(std::size_t place, long number, const Words& w) {
  return with_real_id(pid_t(w[place]), [&](pid_t real) {
    Words words;
    std::ranges::copy(w, words);
    words[place] = real;
    return checked_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  });
}

// Only a target of the kind `process` is a thread's number; groups and users have other numbers.
long with_real_target(long number, const Words& w, long process) {
  return w[0] == process ? with_real_id_at(1, number, w) : in_real_kernel(number, w);
}

// Calls with the number of a thread or process that the table does not have: the C library has no function, or one with
// another result.
std::optional<long> call_of_thread(long number, const Words& w) {
  constexpr long kIoprioProcess = 1;
  switch (number) {
    case SYS_sched_setscheduler:
    case SYS_sched_getscheduler:
    case SYS_sched_setparam:
    case SYS_sched_getparam:
    case SYS_sched_setattr:
    case SYS_sched_getattr:
    case SYS_sched_rr_get_interval:
    case SYS_prlimit64: return with_real_id_at(0, number, w);
    case SYS_pidfd_open: note_real_call(number); return with_real_id_at(0, number, w);
    case SYS_setpriority:
    case SYS_getpriority: return with_real_target(number, w, PRIO_PROCESS);
    case SYS_ioprio_set:
    case SYS_ioprio_get: return with_real_target(number, w, kIoprioProcess);
    case SYS_ptrace:
      if (w[0] == PTRACE_TRACEME) return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

long answer_call(abi::ThreadSlot& slot, long number, const Words& words) {
  if (CallHandler* handler = handler_of(number)) return handler(slot, words);
  const auto result = call_of_thread(number, words);
  return result ? *result : in_real_kernel(number, words);
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  Words words;
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  const Uncancelled as_by_linux;
  if (abi::ThreadSlot* slot = simulated_slot()) return answer_call(*slot, number, words);
  return checked_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

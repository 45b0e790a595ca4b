// SPDX-License-Identifier: Apache-2.0
// syscall(). Programs use it for system calls for which the C library has no function, or only a recent one. Calls that
// are simulated by name are simulated by number, too.

#include "sim/host/shim/real_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/files/signal_descriptors.h"
#include "sim/host/kernel/ipc/futex.h"
#include "sim/host/kernel/ipc/posix_queues.h"
#include "sim/host/kernel/ipc/shared_segments.h"
#include "sim/host/kernel/processes/affinity.h"
#include "sim/host/kernel/processes/clones.h"
#include "sim/host/kernel/processes/process.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/kernel/signals/kernel_signals.h"
#include "sim/host/kernel/signals/kill.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/mappings.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

extern "C" {  // <sys/capability.h> belongs to another package
int capget(__user_cap_header_struct* header, __user_cap_data_struct* data) noexcept;
int capset(__user_cap_header_struct* header, const __user_cap_data_struct* data) noexcept;
}

namespace rnicsim::clock {
namespace {

template <class To>
To as(long word) {
  if constexpr (std::is_pointer_v<To>) {
    return reinterpret_cast<To>(word);
  } else {
    return To(word);
  }
}

// Calls a function of the C library with the words of a system call.
template <class Result, class... Parameters>
long apply(Result (*function)(Parameters...), const Words& words) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return long(function(as<Parameters>(words[I])...));
  }(std::index_sequence_for<Parameters...>{});
}
template <class Result, class... Parameters>
long apply(Result (*function)(Parameters...) noexcept, const Words& words) {
  return apply(static_cast<Result (*)(Parameters...)>(function), words);
}

long as_long(void* address) { return reinterpret_cast<long>(address); }

long sleep_on_clock(const Words& words) {
  const int error = ::clock_nanosleep(clockid_t(words[0]), int(words[1]), as<const timespec*>(words[2]),
                                      as<timespec*>(words[3]));
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Returns the number of bytes, as the kernel does.
long current_folder(char* folder, size_t bytes) {
  return ::getcwd(folder, bytes) != nullptr ? long(strlen(folder)) + 1 : -1;
}

// Calls that take no time and tell nothing of the real machine: docs/system-calls.md has the reasons.
constexpr long kHarmless[] = {
    SYS_mprotect, SYS_brk, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_msync, SYS_mlockall, SYS_munlockall, SYS_memfd_create, SYS_membarrier, SYS_rt_sigreturn,
    SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_setuid,
    SYS_setgid, SYS_umask, SYS_getrlimit, SYS_setrlimit, SYS_prctl, SYS_arch_prctl,
    SYS_personality, SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_set_robust_list, SYS_get_robust_list,
    SYS_set_tid_address, SYS_rseq, SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_eventfd, SYS_eventfd2,
    SYS_pipe, SYS_pipe2, SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_fstat, SYS_fchmod,
    SYS_fchown, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs, SYS_readahead,
    SYS_getdents, SYS_getdents64, SYS_fchdir, SYS_socketpair, SYS_fadvise64, SYS_copy_file_range,
    SYS_tee, SYS_seccomp, SYS_landlock_create_ruleset,
    SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_exit, SYS_mq_getsetattr,
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
    {SYS_openat2, 1, true, Last::followed},       {SYS_faccessat2, 1, true, Last::followed},
    {SYS_futimesat, 1, true, Last::followed},     {SYS_setxattr, 0, false, Last::followed},
    {SYS_lsetxattr, 0, false, Last::itself},      {SYS_listxattr, 0, false, Last::followed},
    {SYS_llistxattr, 0, false, Last::seen},       {SYS_removexattr, 0, false, Last::followed},
    {SYS_lremovexattr, 0, false, Last::itself},   {SYS_name_to_handle_at, 1, true, Last::itself},
};

// Makes the call with the path as it leads on the host. A path that must not leave its folder (openat2() with
// RESOLVE_BENEATH and its like) stays.
long with_own_path(const PathCall& call, const Words& given) {
  const auto* how = as<const open_how*>(given[2]);
  const bool is_bound = call.number == SYS_openat2 && how != nullptr && how->resolve != 0;
  const HostPath path(call.has_folder ? int(given[0]) : AT_FDCWD,
                      is_bound ? nullptr : as<const char*>(given[call.path]), call.last);
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

// Calls with a thread's number for which the C library has no function, or one with another result.
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
    case SYS_pidfd_open:
      note_real_call(number);
      return with_real_id_at(0, number, w);
    case SYS_setpriority:
    case SYS_getpriority: return with_real_target(number, w, PRIO_PROCESS);
    case SYS_ioprio_set:
    case SYS_ioprio_get: return with_real_target(number, w, kIoprioProcess);
    default: return std::nullopt;
  }
}

}  // namespace

long answer_call(abi::ThreadSlot& slot, long number, const Words& w) {
  switch (number) {
    // clocks and sleeping
    case SYS_clock_gettime: return apply(::clock_gettime, w);
    case SYS_clock_getres: return apply(::clock_getres, w);
    case SYS_gettimeofday: return ::gettimeofday(as<timeval*>(w[0]), as<struct timezone*>(w[1]));
    case SYS_time: return apply(::time, w);
    case SYS_times: return apply(::times, w);
    case SYS_getrusage: return ::getrusage(__rusage_who_t(w[0]), as<rusage*>(w[1]));
    case SYS_sysinfo: return apply(::sysinfo, w);
    case SYS_nanosleep: return apply(::nanosleep, w);
    case SYS_clock_nanosleep: return sleep_on_clock(w);
    case SYS_sched_yield: return apply(::sched_yield, w);
    case SYS_pause: return apply(::pause, w);
    case SYS_alarm: return apply(::alarm, w);
    case SYS_getitimer: return ::getitimer(__itimer_which_t(w[0]), as<itimerval*>(w[1]));
    case SYS_setitimer: return ::setitimer(__itimer_which_t(w[0]), as<const itimerval*>(w[1]), as<itimerval*>(w[2]));
    // threads and processes
    case SYS_futex:
      return futex(slot, {as<std::uint32_t*>(w[0]), int(w[1]), std::uint32_t(w[2]), as<const timespec*>(w[3]),
                          as<std::uint32_t*>(w[4]), std::uint32_t(w[5])});
    case SYS_sched_setaffinity: return apply(::sched_setaffinity, w);
    case SYS_sched_getaffinity: return get_affinity_call(slot, w[0], size_t(w[1]), as<void*>(w[2]));
    case SYS_getpid: return apply(::getpid, w);
    case SYS_getppid: return apply(::getppid, w);
    case SYS_gettid: return apply(::gettid, w);
    case SYS_fork: return apply(::fork, w);
    case SYS_vfork: return ::fork();
    case SYS_clone: return clone_call(w);
    case SYS_clone3: return refuse_clone(number);
    case SYS_execve: return apply(::execve, w);
    case SYS_execveat: return apply(::execveat, w);
    case SYS_wait4: return apply(::wait4, w);
    case SYS_kill: return apply(::kill, w);
    case SYS_tgkill: return signal_thread(pid_t(w[0]), pid_t(w[1]), int(w[2]));
    case SYS_tkill: return signal_thread(::getpid(), pid_t(w[0]), int(w[1]));
    case SYS_rt_sigqueueinfo: return ::sigqueue(pid_t(w[0]), int(w[1]), as<siginfo_t*>(w[2])->si_value);
    case SYS_process_vm_readv: return apply(::process_vm_readv, w);
    case SYS_process_vm_writev: return apply(::process_vm_writev, w);
    case SYS_setpgid: return apply(::setpgid, w);
    case SYS_getpgid: return apply(::getpgid, w);
    case SYS_capget: return apply(::capget, w);
    case SYS_capset: return apply(::capset, w);
    case SYS_getpgrp: return apply(::getpgrp, w);
    case SYS_getsid: return apply(::getsid, w);
    case SYS_setsid: return apply(::setsid, w);
    case SYS_waitid: return apply(wait_by_id, w);
    case SYS_exit_group: ::_exit(int(w[0]));
    // signals
    case SYS_rt_sigaction: return set_action(w);
    case SYS_rt_sigprocmask: return change_mask(w);
    case SYS_rt_sigsuspend: return suspend(w);
    case SYS_rt_sigtimedwait: return await_signal(w);
    case SYS_rt_sigpending: return waiting_signals(w);
    case SYS_signalfd: return watch_signals_call(int(w[0]), as<const void*>(w[1]), size_t(w[2]), 0);
    case SYS_signalfd4: return watch_signals_call(int(w[0]), as<const void*>(w[1]), size_t(w[2]), int(w[3]));
    case SYS_sigaltstack: return apply(::sigaltstack, w);
    // memory
    case SYS_mmap:
      return as_long(map_pages(as<void*>(w[0]), size_t(w[1]), int(w[2]), int(w[3]), int(w[4]), w[5]));
    case SYS_mremap:
      return as_long(remap_pages(as<void*>(w[0]), size_t(w[1]), size_t(w[2]), int(w[3]), as<void*>(w[4])));
    case SYS_munmap: return apply(unmap_pages, w);
    case SYS_madvise: return apply(advise_pages, w);
    case SYS_shmget: return apply(::shmget, w);
    case SYS_shmat: return as_long(attach_segment(int(w[0]), as<const void*>(w[1]), int(w[2])));
    case SYS_shmctl: return ::shmctl(int(w[0]), int(w[1]), as<shmid_ds*>(w[2]));
    case SYS_shmdt: return apply(detach_segment, w);
    case SYS_semget: return apply(::semget, w);
    case SYS_semop: return apply(::semop, w);
    case SYS_semtimedop: return apply(::semtimedop, w);
    case SYS_semctl: return ::semctl(int(w[0]), int(w[1]), int(w[2]), w[3]);
    case SYS_msgget: return apply(::msgget, w);
    case SYS_msgsnd: return apply(::msgsnd, w);
    case SYS_msgrcv: return apply(::msgrcv, w);
    case SYS_msgctl: return ::msgctl(int(w[0]), int(w[1]), as<msqid_ds*>(w[2]));
    case SYS_mq_open:
      return open_queue_call(as<const char*>(w[0]), int(w[1]), mode_t(w[2]), as<mq_attr*>(w[3]));
    case SYS_mq_unlink: return apply(unlink_queue_call, w);
    case SYS_mq_timedsend: return apply(::mq_timedsend, w);
    case SYS_mq_timedreceive: return apply(::mq_timedreceive, w);
    // random numbers, names
    case SYS_getrandom: return apply(::getrandom, w);
    case SYS_uname: return apply(::uname, w);
    // descriptors
    case SYS_read: return apply(::read, w);
    case SYS_readv: return apply(::readv, w);
    case SYS_recvfrom: return ::recvfrom(int(w[0]), as<void*>(w[1]), size_t(w[2]), int(w[3]), as<sockaddr*>(w[4]),
                                         as<socklen_t*>(w[5]));
    case SYS_recvmsg: return apply(::recvmsg, w);
    case SYS_recvmmsg: return apply(::recvmmsg, w);
    case SYS_write: return apply(::write, w);
    case SYS_writev: return apply(::writev, w);
    case SYS_sendfile: return apply(::sendfile, w);
    case SYS_splice: return apply(::splice, w);
    case SYS_sendto: return ::sendto(int(w[0]), as<const void*>(w[1]), size_t(w[2]), int(w[3]),
                                     as<const sockaddr*>(w[4]), socklen_t(w[5]));
    case SYS_sendmsg: return apply(::sendmsg, w);
    case SYS_sendmmsg: return apply(::sendmmsg, w);
    case SYS_poll: return apply(::poll, w);
    case SYS_ppoll: return apply(::ppoll, w);
    case SYS_select: return apply(::select, w);
    case SYS_epoll_wait: return apply(::epoll_wait, w);
    case SYS_epoll_pwait: return apply(::epoll_pwait, w);
    case SYS_socket: return apply(::socket, w);
    case SYS_bind: return ::bind(int(w[0]), as<const sockaddr*>(w[1]), socklen_t(w[2]));
    case SYS_listen: return apply(::listen, w);
    case SYS_connect: return ::connect(int(w[0]), as<const sockaddr*>(w[1]), socklen_t(w[2]));
    case SYS_accept: return ::accept(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
    case SYS_accept4: return ::accept4(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]), int(w[3]));
    case SYS_shutdown: return apply(::shutdown, w);
    case SYS_getsockname: return ::getsockname(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
    case SYS_getpeername: return ::getpeername(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
    case SYS_setsockopt: return apply(::setsockopt, w);
    case SYS_getsockopt: return apply(::getsockopt, w);
    case SYS_close: return apply(::close, w);
    case SYS_close_range: return apply(::close_range, w);
    case SYS_dup: return apply(::dup, w);
    case SYS_dup2: return apply(::dup2, w);
    case SYS_dup3: return apply(::dup3, w);
    case SYS_fcntl: return ::fcntl(int(w[0]), int(w[1]), w[2]);
    case SYS_flock: return apply(::flock, w);
    case SYS_ioctl: return ::ioctl(int(w[0]), static_cast<unsigned long>(w[1]), w[2]);
    case SYS_timerfd_create: return apply(::timerfd_create, w);
    case SYS_timerfd_settime: return apply(::timerfd_settime, w);
    case SYS_timerfd_gettime: return apply(::timerfd_gettime, w);
    // files
    case SYS_open: return ::open(as<const char*>(w[0]), int(w[1]), mode_t(w[2]));
    case SYS_openat: return ::openat(int(w[0]), as<const char*>(w[1]), int(w[2]), mode_t(w[3]));
    case SYS_access: return apply(::access, w);
    case SYS_stat: return apply(::stat, w);
    case SYS_lstat: return apply(::lstat, w);
    case SYS_newfstatat: return apply(::fstatat, w);
    case SYS_statx: return apply(::statx, w);
    case SYS_readlink: return apply(::readlink, w);
    case SYS_readlinkat: return apply(::readlinkat, w);
    case SYS_creat: return ::creat(as<const char*>(w[0]), mode_t(w[1]));
    case SYS_faccessat: return ::faccessat(int(w[0]), as<const char*>(w[1]), int(w[2]), 0);
    case SYS_chdir: return apply(::chdir, w);
    case SYS_getcwd: return current_folder(as<char*>(w[0]), size_t(w[1]));
    case SYS_mkdir: return apply(::mkdir, w);
    case SYS_mkdirat: return apply(::mkdirat, w);
    case SYS_rmdir: return apply(::rmdir, w);
    case SYS_link: return apply(::link, w);
    case SYS_linkat: return apply(::linkat, w);
    case SYS_symlink: return apply(::symlink, w);
    case SYS_symlinkat: return apply(::symlinkat, w);
    case SYS_unlink: return apply(::unlink, w);
    case SYS_unlinkat: return apply(::unlinkat, w);
    case SYS_rename: return apply(::rename, w);
    case SYS_renameat: return apply(::renameat, w);
    case SYS_renameat2: return apply(::renameat2, w);
    case SYS_mknod: return apply(::mknod, w);
    case SYS_mknodat: return apply(::mknodat, w);
    case SYS_chmod: return apply(::chmod, w);
    case SYS_fchmodat: return ::fchmodat(int(w[0]), as<const char*>(w[1]), mode_t(w[2]), 0);
    case SYS_chown: return apply(::chown, w);
    case SYS_lchown: return apply(::lchown, w);
    case SYS_fchownat: return apply(::fchownat, w);
    case SYS_truncate: return apply(::truncate, w);
    case SYS_statfs: return ::statfs(as<const char*>(w[0]), as<struct statfs*>(w[1]));
    case SYS_utime: return ::utime(as<const char*>(w[0]), as<const utimbuf*>(w[1]));
    case SYS_utimes: return apply(::utimes, w);
    case SYS_utimensat: return apply(::utimensat, w);
    case SYS_getxattr: return apply(::getxattr, w);
    case SYS_lgetxattr: return apply(::lgetxattr, w);
    case SYS_ptrace:
      if (w[0] == PTRACE_TRACEME) return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      break;
    case SYS_inotify_add_watch: return apply(::inotify_add_watch, w);
    // Work in a ring would be outside the simulation. Programs do without io_uring where there is none.
    case SYS_io_uring_setup:
    case SYS_io_uring_enter:
    case SYS_io_uring_register: errno = ENOSYS; return -1;
    default: break;
  }
  const auto result = call_of_thread(number, w);
  return result ? *result : in_real_kernel(number, w);
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

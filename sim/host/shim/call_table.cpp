// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/call_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
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

#include <array>
#include <type_traits>
#include <utility>

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
#include "sim/host/shim/mappings.h"
#include "sim/host/shim/next.h"

extern "C" {  // <sys/capability.h> belongs to another package
int capget(__user_cap_header_struct* header, __user_cap_data_struct* data) noexcept;
int capset(__user_cap_header_struct* header, const __user_cap_data_struct* data) noexcept;
}

namespace rnicsim::clock {
namespace {

using abi::ThreadSlot;

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
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return long(function(as<Parameters>(words[I])...)); }
  (std::index_sequence_for<Parameters...>{});
}
template <class Result, class... Parameters>
long apply(Result (*function)(Parameters...) noexcept, const Words& words) {
  return apply(static_cast<Result (*)(Parameters...)>(function), words);
}

long as_long(void* address) { return reinterpret_cast<long>(address); }

long sleep_on_clock(const Words& words) {
  const int error =
      ::clock_nanosleep(clockid_t(words[0]), int(words[1]), as<const timespec*>(words[2]), as<timespec*>(words[3]));
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// Returns the number of bytes, as the kernel does.
long current_folder(char* folder, size_t bytes) {
  return ::getcwd(folder, bytes) != nullptr ? long(strlen(folder)) + 1 : -1;
}

// Work in a ring would be outside the simulation. Programs do without io_uring where the kernel has none.
long refuse_ring(ThreadSlot&, const Words&) {
  errno = ENOSYS;
  return -1;
}

// A call whose words are the parameters of this function.
template <auto Function>
long through(ThreadSlot&, const Words& words) {
  return apply(Function, words);
}

struct Row {
  long number;
  CallHandler* handler;
};
constexpr Row kRows[] = {
    // clocks and sleeping
    {SYS_clock_gettime, through<::clock_gettime>},
    {SYS_clock_getres, through<::clock_getres>},
    {SYS_gettimeofday,
     [](ThreadSlot&, const Words& w) -> long {
       return ::gettimeofday(as<timeval*>(w[0]), as<struct timezone*>(w[1]));
     }},
    {SYS_time, through<::time>},
    {SYS_times, through<::times>},
    {SYS_getrusage,
     [](ThreadSlot&, const Words& w) -> long { return ::getrusage(__rusage_who_t(w[0]), as<rusage*>(w[1])); }},
    {SYS_sysinfo, through<::sysinfo>},
    {SYS_nanosleep, through<::nanosleep>},
    {SYS_clock_nanosleep, [](ThreadSlot&, const Words& w) -> long { return sleep_on_clock(w); }},
    {SYS_sched_yield, through<::sched_yield>},
    {SYS_pause, through<::pause>},
    {SYS_alarm, through<::alarm>},
    {SYS_getitimer,
     [](ThreadSlot&, const Words& w) -> long { return ::getitimer(__itimer_which_t(w[0]), as<itimerval*>(w[1])); }},
    {SYS_setitimer,
     [](ThreadSlot&, const Words& w) -> long {
       return ::setitimer(__itimer_which_t(w[0]), as<const itimerval*>(w[1]), as<itimerval*>(w[2]));
     }},
    // threads and processes
    {SYS_futex,
     [](ThreadSlot& slot, const Words& w) -> long {
       return futex(slot, {as<std::uint32_t*>(w[0]), int(w[1]), std::uint32_t(w[2]), as<const timespec*>(w[3]),
                           as<std::uint32_t*>(w[4]), std::uint32_t(w[5])});
     }},
    {SYS_sched_setaffinity, through<::sched_setaffinity>},
    {SYS_sched_getaffinity,
     [](ThreadSlot& slot, const Words& w) -> long {
       return get_affinity_call(slot, w[0], size_t(w[1]), as<void*>(w[2]));
     }},
    {SYS_getpid, through<::getpid>},
    {SYS_getppid, through<::getppid>},
    {SYS_gettid, through<::gettid>},
    {SYS_fork, through<::fork>},
    {SYS_vfork, [](ThreadSlot&, const Words&) -> long { return ::fork(); }},
    {SYS_clone, [](ThreadSlot&, const Words& w) -> long { return clone_call(w); }},
    {SYS_clone3, [](ThreadSlot&, const Words&) -> long { return refuse_clone(SYS_clone3); }},
    {SYS_execve, through<::execve>},
    {SYS_execveat, through<::execveat>},
    {SYS_wait4, through<::wait4>},
    {SYS_kill, through<::kill>},
    {SYS_tgkill,
     [](ThreadSlot&, const Words& w) -> long { return signal_thread(pid_t(w[0]), pid_t(w[1]), int(w[2])); }},
    {SYS_tkill, [](ThreadSlot&, const Words& w) -> long { return signal_thread(::getpid(), pid_t(w[0]), int(w[1])); }},
    {SYS_rt_sigqueueinfo,
     [](ThreadSlot&, const Words& w) -> long {
       return ::sigqueue(pid_t(w[0]), int(w[1]), as<siginfo_t*>(w[2])->si_value);
     }},
    {SYS_process_vm_readv, through<::process_vm_readv>},
    {SYS_process_vm_writev, through<::process_vm_writev>},
    {SYS_setpgid, through<::setpgid>},
    {SYS_getpgid, through<::getpgid>},
    {SYS_capget, through<::capget>},
    {SYS_capset, through<::capset>},
    {SYS_getpgrp, through<::getpgrp>},
    {SYS_getsid, through<::getsid>},
    {SYS_setsid, through<::setsid>},
    {SYS_waitid, through<wait_by_id>},
    {SYS_exit_group, [](ThreadSlot&, const Words& w) -> long { ::_exit(int(w[0])); }},
    // signals
    {SYS_rt_sigaction, [](ThreadSlot&, const Words& w) -> long { return set_action(w); }},
    {SYS_rt_sigprocmask, [](ThreadSlot&, const Words& w) -> long { return change_mask(w); }},
    {SYS_rt_sigsuspend, [](ThreadSlot&, const Words& w) -> long { return suspend(w); }},
    {SYS_rt_sigtimedwait, [](ThreadSlot&, const Words& w) -> long { return await_signal(w); }},
    {SYS_rt_sigpending, [](ThreadSlot&, const Words& w) -> long { return waiting_signals(w); }},
    {SYS_signalfd,
     [](ThreadSlot&, const Words& w) -> long {
       return watch_signals_call(int(w[0]), as<const void*>(w[1]), size_t(w[2]), 0);
     }},
    {SYS_signalfd4,
     [](ThreadSlot&, const Words& w) -> long {
       return watch_signals_call(int(w[0]), as<const void*>(w[1]), size_t(w[2]), int(w[3]));
     }},
    {SYS_sigaltstack, through<::sigaltstack>},
    // memory
    {SYS_mmap,
     [](ThreadSlot&, const Words& w) -> long {
       return as_long(map_pages(as<void*>(w[0]), size_t(w[1]), int(w[2]), int(w[3]), int(w[4]), w[5]));
     }},
    {SYS_mremap,
     [](ThreadSlot&, const Words& w) -> long {
       return as_long(remap_pages(as<void*>(w[0]), size_t(w[1]), size_t(w[2]), int(w[3]), as<void*>(w[4])));
     }},
    {SYS_munmap, through<unmap_pages>},
    {SYS_madvise, through<advise_pages>},
    {SYS_shmget, through<::shmget>},
    {SYS_shmat,
     [](ThreadSlot&, const Words& w) -> long {
       return as_long(attach_segment(int(w[0]), as<const void*>(w[1]), int(w[2])));
     }},
    {SYS_shmctl,
     [](ThreadSlot&, const Words& w) -> long { return ::shmctl(int(w[0]), int(w[1]), as<shmid_ds*>(w[2])); }},
    {SYS_shmdt, through<detach_segment>},
    {SYS_semget, through<::semget>},
    {SYS_semop, through<::semop>},
    {SYS_semtimedop, through<::semtimedop>},
    {SYS_semctl, [](ThreadSlot&, const Words& w) -> long { return ::semctl(int(w[0]), int(w[1]), int(w[2]), w[3]); }},
    {SYS_msgget, through<::msgget>},
    {SYS_msgsnd, through<::msgsnd>},
    {SYS_msgrcv, through<::msgrcv>},
    {SYS_msgctl,
     [](ThreadSlot&, const Words& w) -> long { return ::msgctl(int(w[0]), int(w[1]), as<msqid_ds*>(w[2])); }},
    {SYS_mq_open,
     [](ThreadSlot&, const Words& w) -> long {
       return open_queue_call(as<const char*>(w[0]), int(w[1]), mode_t(w[2]), as<mq_attr*>(w[3]));
     }},
    {SYS_mq_unlink, through<unlink_queue_call>},
    {SYS_mq_timedsend, through<::mq_timedsend>},
    {SYS_mq_timedreceive, through<::mq_timedreceive>},
    // random numbers, names
    {SYS_getrandom, through<::getrandom>},
    {SYS_uname, through<::uname>},
    // descriptors
    {SYS_read, through<::read>},
    {SYS_readv, through<::readv>},
    {SYS_recvfrom,
     [](ThreadSlot&, const Words& w) -> long {
       return ::recvfrom(int(w[0]), as<void*>(w[1]), size_t(w[2]), int(w[3]), as<sockaddr*>(w[4]),
                         as<socklen_t*>(w[5]));
     }},
    {SYS_recvmsg, through<::recvmsg>},
    {SYS_recvmmsg, through<::recvmmsg>},
    {SYS_write, through<::write>},
    {SYS_writev, through<::writev>},
    {SYS_sendfile, through<::sendfile>},
    {SYS_splice, through<::splice>},
    {SYS_sendto,
     [](ThreadSlot&, const Words& w) -> long {
       return ::sendto(int(w[0]), as<const void*>(w[1]), size_t(w[2]), int(w[3]), as<const sockaddr*>(w[4]),
                       socklen_t(w[5]));
     }},
    {SYS_sendmsg, through<::sendmsg>},
    {SYS_sendmmsg, through<::sendmmsg>},
    {SYS_poll, through<::poll>},
    {SYS_ppoll, through<::ppoll>},
    {SYS_select, through<::select>},
    {SYS_epoll_wait, through<::epoll_wait>},
    {SYS_epoll_pwait, through<::epoll_pwait>},
    {SYS_socket, through<::socket>},
    {SYS_bind,
     [](ThreadSlot&, const Words& w) -> long { return ::bind(int(w[0]), as<const sockaddr*>(w[1]), socklen_t(w[2])); }},
    {SYS_listen, through<::listen>},
    {SYS_connect,
     [](ThreadSlot&, const Words& w) -> long {
       return ::connect(int(w[0]), as<const sockaddr*>(w[1]), socklen_t(w[2]));
     }},
    {SYS_accept,
     [](ThreadSlot&, const Words& w) -> long {
       return ::accept(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
     }},
    {SYS_accept4,
     [](ThreadSlot&, const Words& w) -> long {
       return ::accept4(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]), int(w[3]));
     }},
    {SYS_shutdown, through<::shutdown>},
    {SYS_getsockname,
     [](ThreadSlot&, const Words& w) -> long {
       return ::getsockname(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
     }},
    {SYS_getpeername,
     [](ThreadSlot&, const Words& w) -> long {
       return ::getpeername(int(w[0]), as<sockaddr*>(w[1]), as<socklen_t*>(w[2]));
     }},
    {SYS_setsockopt, through<::setsockopt>},
    {SYS_getsockopt, through<::getsockopt>},
    {SYS_close, through<::close>},
    {SYS_close_range, through<::close_range>},
    {SYS_dup, through<::dup>},
    {SYS_dup2, through<::dup2>},
    {SYS_dup3, through<::dup3>},
    {SYS_fcntl, [](ThreadSlot&, const Words& w) -> long { return ::fcntl(int(w[0]), int(w[1]), w[2]); }},
    {SYS_flock, through<::flock>},
    {SYS_ioctl,
     [](ThreadSlot&, const Words& w) -> long { return ::ioctl(int(w[0]), static_cast<unsigned long>(w[1]), w[2]); }},
    {SYS_timerfd_create, through<::timerfd_create>},
    {SYS_timerfd_settime, through<::timerfd_settime>},
    {SYS_timerfd_gettime, through<::timerfd_gettime>},
    // files
    {SYS_open,
     [](ThreadSlot&, const Words& w) -> long { return ::open(as<const char*>(w[0]), int(w[1]), mode_t(w[2])); }},
    {SYS_openat,
     [](ThreadSlot&,
        const Words& w) -> long { return ::openat(int(w[0]), as<const char*>(w[1]), int(w[2]), mode_t(w[3])); }},
    {SYS_access, through<::access>},
    {SYS_stat, through<::stat>},
    {SYS_lstat, through<::lstat>},
    {SYS_newfstatat, through<::fstatat>},
    {SYS_statx, through<::statx>},
    {SYS_readlink, through<::readlink>},
    {SYS_readlinkat, through<::readlinkat>},
    {SYS_creat, [](ThreadSlot&, const Words& w) -> long { return ::creat(as<const char*>(w[0]), mode_t(w[1])); }},
    {SYS_faccessat,
     [](ThreadSlot&, const Words& w) -> long { return ::faccessat(int(w[0]), as<const char*>(w[1]), int(w[2]), 0); }},
    {SYS_chdir, through<::chdir>},
    {SYS_getcwd, [](ThreadSlot&, const Words& w) -> long { return current_folder(as<char*>(w[0]), size_t(w[1])); }},
    {SYS_mkdir, through<::mkdir>},
    {SYS_mkdirat, through<::mkdirat>},
    {SYS_rmdir, through<::rmdir>},
    {SYS_link, through<::link>},
    {SYS_linkat, through<::linkat>},
    {SYS_symlink, through<::symlink>},
    {SYS_symlinkat, through<::symlinkat>},
    {SYS_unlink, through<::unlink>},
    {SYS_unlinkat, through<::unlinkat>},
    {SYS_rename, through<::rename>},
    {SYS_renameat, through<::renameat>},
    {SYS_renameat2, through<::renameat2>},
    {SYS_mknod, through<::mknod>},
    {SYS_mknodat, through<::mknodat>},
    {SYS_chmod, through<::chmod>},
    {SYS_fchmodat,
     [](ThreadSlot&, const Words& w) -> long { return ::fchmodat(int(w[0]), as<const char*>(w[1]), mode_t(w[2]), 0); }},
    {SYS_chown, through<::chown>},
    {SYS_lchown, through<::lchown>},
    {SYS_fchownat, through<::fchownat>},
    {SYS_truncate, through<::truncate>},
    {SYS_statfs,
     [](ThreadSlot&, const Words& w) -> long { return ::statfs(as<const char*>(w[0]), as<struct statfs*>(w[1])); }},
    {SYS_utime,
     [](ThreadSlot&, const Words& w) -> long { return ::utime(as<const char*>(w[0]), as<const utimbuf*>(w[1])); }},
    {SYS_utimes, through<::utimes>},
    {SYS_utimensat, through<::utimensat>},
    {SYS_getxattr, through<::getxattr>},
    {SYS_lgetxattr, through<::lgetxattr>},
    {SYS_inotify_add_watch, through<::inotify_add_watch>},
    // Work in a ring would be outside the simulation. Programs do without io_uring where there is none.
    {SYS_io_uring_setup, refuse_ring},
    {SYS_io_uring_enter, refuse_ring},
    {SYS_io_uring_register, refuse_ring},
};

constexpr std::size_t kNumbers = 512;  // more than the kernel has

constexpr std::array<CallHandler*, kNumbers> by_number() {
  std::array<CallHandler*, kNumbers> handlers{};
  for (const Row& row : kRows) handlers.at(std::size_t(row.number)) = row.handler;
  return handlers;
}
constinit const std::array<CallHandler*, kNumbers> handlers = by_number();

}  // namespace

CallHandler* handler_of(long number) {
  return number >= 0 && std::size_t(number) < kNumbers ? handlers[std::size_t(number)] : nullptr;
}

}  // namespace rnicsim::clock

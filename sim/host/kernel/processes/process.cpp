// SPDX-License-Identifier: Apache-2.0
// Processes: virtual pids, wait and exit.

#include "sim/host/kernel/processes/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/host/kernel/processes/children.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(getpid);
RNICSIM_NEXT(getppid);
RNICSIM_NEXT(setpgid);
RNICSIM_NEXT(wait4);
RNICSIM_NEXT(_exit);

namespace rnicsim::clock {
namespace {

// The world first reaches the process's time, because memory that the device may still read, descriptors and threads go
// when the process really ends.
void announce_exit(int status) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return;
  sync(*slot);
  leave(*slot, abi::Call::process_exit, {std::uint64_t(status)});
}

// Flushes standard output while other threads still get turns: the reader may have to make room.
void flush_standard_output() {
  if (::ftrylockfile(stdout) != 0) return;
  ::fflush_unlocked(stdout);
  ::funlockfile(stdout);
}

// Waits in the real kernel for a child outside the simulation: it died before it could attach, or has left. 0: the
// simulator has the answer.
pid_t wait_outside(pid_t pid, int* status, int options, rusage* usage) {
  const Child* child = pid > 0 ? find_child(pid) : find_child_outside();
  if (child == nullptr || !child->outside) return 0;
  const pid_t reaped = next_wait4(child->real_pid, status, pid > 0 ? options : options | WNOHANG, nullptr);
  if (reaped > 0) forget_child(reaped);
  if (usage != nullptr) *usage = {};
  return reaped > 0 || pid > 0 ? reaped : 0;
}

// Waits in a signal handler that runs while its thread waits in the real kernel: the simulator cannot be asked.
pid_t wait_out_of_turn(pid_t pid, int* status, int options, rusage* usage) {
  siginfo_t ended{};
  const Child* wanted = pid > 0 ? find_child(pid) : nullptr;
  if (pid <= 0 && raw_call(SYS_waitid, P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT, nullptr) == 0)
    wanted = find_real_child(ended.si_pid);
  if (usage != nullptr) *usage = {};
  if (wanted == nullptr) return next_wait4(pid, status, options | WNOHANG, nullptr);
  const pid_t seen = wanted->virtual_pid;
  const pid_t reaped = next_wait4(wanted->real_pid, status, options | WNOHANG, nullptr);
  if (reaped > 0) forget_child(seen);
  return reaped > 0 ? seen : reaped;
}

struct Ended {
  int error;
  pid_t virtual_pid = 0;  // 0: none
  pid_t real_pid = 0;
  int status = 0;              // if the child stopped or continued; 0: it ended
  std::uint64_t cpu_time = 0;  // for the child and its children, in ps
};

// `options` are those of waitid(2).
Ended await_child(abi::ThreadSlot& slot, pid_t pid, int options) {
  const std::uint64_t wanted = pid > 0 ? std::uint64_t(pid) : 0;
  const int error = call_without_signals(slot, abi::Call::wait_child, {wanted, std::uint64_t(options)});
  if (error != 0) return {error};
  return {0, pid_t(slot.value), pid_t(slot.argument[2]), int(slot.argument[3]), slot.argument[4]};
}

// Status of an ended child that stays to be waited for (WNOWAIT).
int status_left(pid_t real_pid) {
  siginfo_t told{};
  raw_call(SYS_waitid, P_PID, real_pid, &told, WEXITED | WNOHANG | WNOWAIT, nullptr);
  if (told.si_code == CLD_EXITED) return told.si_status << 8;
  return told.si_status | (told.si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

// As on Linux, the child's objects are gone when wait() returns: wait_child makes the simulator notice the end.
pid_t wait_in_real_time(pid_t pid, int* status, int options, rusage* usage) {
  const pid_t ended = next_wait4(pid, status, options, usage);
  abi::ThreadSlot* slot = own_slot();
  if (ended > 0 && slot != nullptr && !simulated())
    call_without_signals(*slot, abi::Call::wait_child, {0, std::uint64_t(WEXITED | WNOHANG)});
  return ended;
}

// 0: a signal handler has waited for the child meanwhile.
pid_t reap(const Ended& ended, int* status, int options, rusage* usage) {
  const bool leaves = (options & WNOWAIT) != 0;
  if (usage != nullptr) *usage = {.ru_utime = to_timeval(ended.cpu_time)};
  if (ended.status != 0 || leaves) {
    if (status != nullptr) *status = ended.status != 0 ? ended.status : status_left(ended.real_pid);
    return ended.virtual_pid;
  }
  if (find_child(ended.virtual_pid) == nullptr) {
    session()->header().children_time += ended.cpu_time;
    return 0;
  }
  const pid_t reaped = next_wait4(ended.real_pid, status, 0, nullptr);
  forget_child(ended.virtual_pid);
  if (reaped > 0) session()->header().children_time += ended.cpu_time;  // not of a child that is reaped automatically
  return reaped > 0 ? ended.virtual_pid : reaped;
}

// Registered first, so that it runs last: the program's own exit handlers still have their clock.
void at_exit(int status, void*) {
  if (simulated()) flush_standard_output();
  announce_exit(status);
}
__attribute__((constructor)) void register_exit() { ::on_exit(at_exit, nullptr); }

}  // namespace

pid_t real_pid_of(pid_t pid) {
  const bool is_group = pid < 0;
  const pid_t wanted = is_group ? -pid : pid;
  pid_t real = wanted;
  if (wanted == pid_t(session()->header().virtual_pid)) {
    real = pid_t(checked_call(SYS_getpid));
  } else if (wanted == pid_t(session()->header().virtual_parent_pid)) {
    real = pid_t(checked_call(SYS_getppid));
  } else if (const Child* found = find_child(wanted)) {
    real = found->real_pid;
  }
  return is_group ? -real : real;
}

pid_t wait_for_child(abi::ThreadSlot& slot, pid_t pid, int* status, int options, rusage* usage) {
  const int outside_options = options & (WNOHANG | WUNTRACED | WCONTINUED);
  charge(slot, abi::CpuCost::system_call);
  for (;;) {
    cancellation_point();
    if (const pid_t reaped = wait_outside(pid, status, outside_options, usage); reaped != 0) return reaped;
    const Ended ended = await_child(slot, pid, options);
    const pid_t reaped = ended.virtual_pid != 0 ? reap(ended, status, options, usage) : 0;
    raise_signals(slot);  // after the child has been reaped, as on Linux
    const Child* outside = ended.error == ECHILD && pid <= 0 ? find_child_outside() : nullptr;
    if (outside != nullptr) return wait_outside(outside->real_pid, status, outside_options, usage);
    if (ended.error == EINTR && restarts_after_signal()) continue;
    if (ended.virtual_pid != 0 && reaped == 0) continue;
    errno = ended.error != 0 ? ended.error : errno;
    return ended.error != 0 ? -1 : reaped;
  }
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT pid_t getpid() noexcept { return simulated() ? pid_t(session()->header().virtual_pid) : next_getpid(); }
RNICSIM_EXPORT pid_t getppid() noexcept {
  return simulated() ? pid_t(session()->header().virtual_parent_pid) : next_getppid();
}

RNICSIM_EXPORT int setpgid(pid_t pid, pid_t group) noexcept {
  if (!simulated()) return next_setpgid(pid, group);
  return next_setpgid(real_pid_of(pid), real_pid_of(group));
}

RNICSIM_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr && simulated() && own_slot() != nullptr) return wait_out_of_turn(pid, status, options, usage);
  if (slot == nullptr) return wait_in_real_time(pid, status, options, usage);
  return wait_for_child(*slot, pid, status, WEXITED | (options & (WNOHANG | WUNTRACED | WCONTINUED)), usage);
}
RNICSIM_EXPORT pid_t waitpid(pid_t pid, int* status, int options) { return ::wait4(pid, status, options, nullptr); }
RNICSIM_EXPORT pid_t wait(int* status) { return ::wait4(-1, status, 0, nullptr); }
RNICSIM_EXPORT pid_t wait3(int* status, int options, rusage* usage) { return ::wait4(-1, status, options, usage); }

RNICSIM_EXPORT void _exit(int status) {
  announce_exit(status);
  next__exit(status);
  __builtin_unreachable();
}
RNICSIM_EXPORT void _Exit(int status) noexcept { ::_exit(status); }

// SPDX-License-Identifier: Apache-2.0
// Calls that take the number of a thread or a process. The program gives a number of the simulated host, which must not
// reach the real kernel, where it may belong to a stranger.

#include "sim/host/kernel/processes/thread_numbers.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" {  // the headers of some C libraries lack this
#include <sys/pidfd.h>
}

#include "sim/host/kernel/processes/children.h"
#include "sim/host/kernel/processes/other_processes.h"
#include "sim/host/kernel/processes/process.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(sched_setscheduler);
RNICSIM_NEXT(sched_getscheduler);
RNICSIM_NEXT(sched_setparam);
RNICSIM_NEXT(sched_getparam);
RNICSIM_NEXT(sched_rr_get_interval);
RNICSIM_NEXT(setpriority);
RNICSIM_NEXT(getpriority);
RNICSIM_NEXT(prlimit);
RNICSIM_NEXT(prlimit64);
RNICSIM_NEXT(getpgid);
static const rnicsim::clock::Next<int(__user_cap_header_struct*, __user_cap_data_struct*)> next_capget{"capget"};
static const rnicsim::clock::Next<int(__user_cap_header_struct*, const __user_cap_data_struct*)> next_capset{"capset"};
RNICSIM_NEXT(getsid);
RNICSIM_NEXT(setsid);
RNICSIM_NEXT(pidfd_open);
RNICSIM_NEXT(process_vm_readv);
RNICSIM_NEXT(process_vm_writev);

namespace rnicsim::clock {

std::optional<pid_t> real_tid_of(pid_t virtual_tid) {
  for (std::uint32_t index = 0; index < abi::kMaxThreads; ++index) {
    const abi::ThreadSlot& slot = session()->slot(index);
    if (slot.virtual_tid == 0) break;  // slots are used in order: no later one has ever been used
    if (slot.tid == 0 || pid_t(slot.virtual_tid) != virtual_tid) continue;
    // The slot of a thread that has ended keeps the real number, which another process may have by now.
    if (raw_call(SYS_tgkill, raw_call(SYS_getpid), slot.tid, 0) == 0) return pid_t(slot.tid);
  }
  return std::nullopt;
}

std::optional<pid_t> real_id_of(pid_t virtual_id) {
  if (virtual_id <= 0 || !simulated()) return virtual_id;
  if (const auto thread = real_tid_of(virtual_id)) return thread;
  if (const Child* child = find_child(virtual_id)) return child->real_pid;
  return find_process(virtual_id);
}

namespace {

// The number of a group is that of its leader.
template <class Next>
int with_real_target(int which, id_t who, Next next) {
  if (!simulated() || which == PRIO_USER) return next(who);
  if (which == PRIO_PGRP) return next(id_t(real_pid_of(pid_t(who))));
  return with_real_id(pid_t(who), [&](pid_t real) { return next(id_t(real)); });
}

// The kernel writes into the header which version it knows.
template <class Next>
int with_real_header(__user_cap_header_struct* header, Next next) {
  if (!simulated() || header == nullptr || header->pid <= 0) return next(header);
  return with_real_id(header->pid, [&](pid_t real) {
    __user_cap_header_struct own{header->version, real};
    const int result = next(&own);
    header->version = own.version;
    return result;
  });
}

// The number of the group or session of `asked` as the program knows it, for the program's own, its parent's, and that
// of `asked` itself. Other numbers stay, because the simulator may not know their processes.
pid_t known_leader(pid_t leader, pid_t asked, pid_t real) {
  if (!simulated() || leader < 0) return leader;
  const auto& header = session()->header();
  if (leader == pid_t(raw_call(SYS_getpid))) return pid_t(header.virtual_pid);
  if (leader == pid_t(raw_call(SYS_getppid))) return pid_t(header.virtual_parent_pid);
  return leader == real ? asked : leader;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int sched_setscheduler(pid_t id, int policy, const sched_param* parameters) noexcept {
  return with_real_id(id, [&](pid_t real) { return next_sched_setscheduler(real, policy, parameters); });
}
RNICSIM_EXPORT int sched_getscheduler(pid_t id) noexcept {
  return with_real_id(id, [&](pid_t real) { return next_sched_getscheduler(real); });
}
RNICSIM_EXPORT int sched_setparam(pid_t id, const sched_param* parameters) noexcept {
  return with_real_id(id, [&](pid_t real) { return next_sched_setparam(real, parameters); });
}
RNICSIM_EXPORT int sched_getparam(pid_t id, sched_param* parameters) noexcept {
  return with_real_id(id, [&](pid_t real) { return next_sched_getparam(real, parameters); });
}
RNICSIM_EXPORT int sched_rr_get_interval(pid_t id, timespec* interval) noexcept {
  return with_real_id(id, [&](pid_t real) { return next_sched_rr_get_interval(real, interval); });
}

RNICSIM_EXPORT int setpriority(__priority_which_t which, id_t who, int value) noexcept {
  return with_real_target(which, who, [&](id_t real) { return next_setpriority(which, real, value); });
}
RNICSIM_EXPORT int getpriority(__priority_which_t which, id_t who) noexcept {
  return with_real_target(which, who, [&](id_t real) { return next_getpriority(which, real); });
}

RNICSIM_EXPORT int prlimit(pid_t pid, __rlimit_resource resource, const rlimit* set, rlimit* old) noexcept {
  return with_real_id(pid, [&](pid_t real) { return next_prlimit(real, resource, set, old); });
}
RNICSIM_EXPORT int prlimit64(pid_t pid, __rlimit_resource resource, const rlimit64* set, rlimit64* old) noexcept {
  return with_real_id(pid, [&](pid_t real) { return next_prlimit64(real, resource, set, old); });
}

RNICSIM_EXPORT int capget(__user_cap_header_struct* header, __user_cap_data_struct* data) noexcept {
  return with_real_header(header, [&](auto* real) { return next_capget(real, data); });
}
RNICSIM_EXPORT int capset(__user_cap_header_struct* header, const __user_cap_data_struct* data) noexcept {
  return with_real_header(header, [&](auto* real) { return next_capset(real, data); });
}

RNICSIM_EXPORT pid_t getpgid(pid_t pid) noexcept {
  return with_real_id(pid, [&](pid_t real) { return known_leader(next_getpgid(real), pid, real); });
}
RNICSIM_EXPORT pid_t getpgrp() noexcept { return ::getpgid(0); }
RNICSIM_EXPORT pid_t getsid(pid_t pid) noexcept {
  return with_real_id(pid, [&](pid_t real) { return known_leader(next_getsid(real), pid, real); });
}
RNICSIM_EXPORT pid_t setsid() noexcept { return known_leader(next_setsid(), 0, 0); }

// The descriptor's events come from the real kernel, at no fixed simulated time.
RNICSIM_EXPORT int pidfd_open(pid_t pid, unsigned flags) noexcept {
  note_real_call(SYS_pidfd_open);
  return with_real_id(pid, [&](pid_t real) { return next_pidfd_open(real, flags); });
}

// Copies from and to memory of another process (MPI libraries use it within a host).
RNICSIM_EXPORT ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                        unsigned long remote_count, unsigned long flags) noexcept {
  return with_real_id(
      pid, [&](pid_t real) { return next_process_vm_readv(real, local, local_count, remote, remote_count, flags); });
}
RNICSIM_EXPORT ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                         unsigned long remote_count, unsigned long flags) noexcept {
  return with_real_id(
      pid, [&](pid_t real) { return next_process_vm_writev(real, local, local_count, remote, remote_count, flags); });
}

// SPDX-License-Identifier: Apache-2.0
// waitid(), by the same wait as wait4().

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/host/kernel/processes/process.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(waitid);

namespace rnicsim::clock {
namespace {

void tell(siginfo_t& info, pid_t pid, int status) {
  info = {};
  if (pid == 0) return;
  info.si_signo = SIGCHLD;
  info.si_pid = pid;
  info.si_uid = ::getuid();
  if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
    info.si_status = WIFSTOPPED(status) ? WSTOPSIG(status) : SIGCONT;
    info.si_code = WIFSTOPPED(status) ? CLD_STOPPED : CLD_CONTINUED;
    return;
  }
  info.si_status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  info.si_code = !WIFSIGNALED(status) ? CLD_EXITED : WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
}

// Waits for groups and for pidfds are not simulated.
int wait_in_real_kernel(idtype_t type, id_t id, siginfo_t* info, int options, rusage* usage) {
  const auto real = type == P_PID ? real_id_of(pid_t(id)) : std::optional(pid_t(id));
  if (!real) {
    errno = ECHILD;
    return -1;
  }
  note_real_call(SYS_waitid);
  return int(checked_call(SYS_waitid, type, id_t(*real), info, options, usage));
}

}  // namespace

int wait_by_id(idtype_t type, id_t id, siginfo_t* info, int options, rusage* usage) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return int(checked_call(SYS_waitid, type, id, info, options, usage));
  constexpr int kWaited = WEXITED | WSTOPPED | WCONTINUED, kAll = kWaited | WNOHANG | WNOWAIT;
  if ((type != P_PID && type != P_ALL) || (options & kWaited) == 0 || (options & ~kAll) != 0)
    return wait_in_real_kernel(type, id, info, options, usage);
  int status = 0;
  const pid_t pid = wait_for_child(*slot, type == P_PID ? pid_t(id) : -1, &status, options, usage);
  if (pid < 0) return -1;
  if (info != nullptr) tell(*info, pid, status);
  return 0;
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  return simulated_slot() != nullptr ? wait_by_id(type, id, info, options, nullptr)
                                     : next_waitid(type, id, info, options);
}

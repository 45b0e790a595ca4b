// waitid(), by what wait4() does.

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs/clock/next.h"
#include "verbs/clock/real_calls.h"
#include "verbs/clock/thread_numbers.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(waitid);

namespace rnicsim::clock {
namespace {

void tell(siginfo_t& info, pid_t pid, int status) {
  info = {};
  if (pid == 0) return;
  info.si_signo = SIGCHLD;
  info.si_pid = pid;
  info.si_uid = ::getuid();
  info.si_status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  info.si_code = !WIFSIGNALED(status) ? CLD_EXITED : WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
}

// Stops, ends that are left for later, and children by descriptor are not simulated.
int wait_in_real_kernel(idtype_t type, id_t id, siginfo_t* info, int options) {
  const auto real = type == P_PID ? real_id_of(pid_t(id)) : std::optional(pid_t(id));
  if (!real) {
    errno = ECHILD;
    return -1;
  }
  note_real_call(SYS_waitid);
  return next_waitid(type, id_t(*real), info, options);
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (simulated_slot() == nullptr) return next_waitid(type, id, info, options);
  const bool of_ends = (options & (WEXITED | WNOWAIT)) == WEXITED && (type == P_PID || type == P_ALL);
  if (!of_ends) return wait_in_real_kernel(type, id, info, options);
  int status = 0;
  const pid_t pid = ::wait4(type == P_PID ? pid_t(id) : -1, &status, options & WNOHANG, nullptr);
  if (pid < 0) return -1;
  if (info != nullptr) tell(*info, pid, status);
  return 0;
}

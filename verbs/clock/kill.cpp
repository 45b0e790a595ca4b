#include "verbs/clock/kill.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "verbs/clock/attach.h"
#include "verbs/clock/children.h"
#include "verbs/clock/next.h"
#include "verbs/clock/process.h"
#include "verbs/clock/raw_call.h"
#include "verbs/clock/thread_numbers.h"

namespace rnicsim::clock {
namespace {

constexpr pid_t kInit = 1;

// Itself, its parent or a child, or the group of one of them.
bool is_known(pid_t pid) {
  if (pid == 0) return true;
  const pid_t wanted = pid < 0 ? -pid : pid;
  if (wanted == kInit) return false;
  const auto& header = session()->header();
  return wanted == pid_t(header.virtual_pid) || wanted == pid_t(header.virtual_parent_pid) ||
         find_child(wanted) != nullptr;
}

// Sends a signal by `send`, which gets the real pid. The real kernel delivers it when it pleases, not in simulated
// time, so the simulator is told when it goes to others; first, for it may end this process too.
template <class Send>
int send_signal(pid_t pid, int signal, Send send) {
  if (!simulated()) return int(send(pid));
  // The simulator, and what else runs on this machine, is not of the simulated host.
  if (!is_known(pid)) {
    errno = pid == -1 || pid == kInit ? EPERM : ESRCH;
    return -1;
  }
  const pid_t real = real_pid_of(pid);
  // Signal 0 only asks whether there is somebody.
  const std::uint32_t sent = signal != 0 && real != pid_t(checked_call(SYS_getpid)) ? 1 : 0;
  const std::atomic_ref counter(session()->header().signals_sent);
  counter.fetch_add(sent);
  const auto result = int(send(real));
  if (result != 0) counter.fetch_sub(sent);
  return result;
}

}  // namespace

long signal_thread(pid_t process, pid_t thread, int signal) {
  const bool is_own = process == pid_t(session()->header().virtual_pid);
  if (const auto real = is_own ? real_tid_of(thread) : std::nullopt)
    return checked_call(SYS_tgkill, raw_call(SYS_getpid), *real, signal);
  errno = ESRCH;
  return -1;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

// A handler may send a signal too, with or without its thread's turn: these make no call, and look nothing up at first
// use.
RNICSIM_EXPORT int kill(pid_t pid, int signal) noexcept {
  return send_signal(pid, signal, [&](pid_t real) { return checked_call(SYS_kill, real, signal); });
}
RNICSIM_EXPORT int killpg(pid_t group, int signal) noexcept {
  if (group >= 0) return ::kill(-group, signal);
  errno = EINVAL;
  return -1;
}
RNICSIM_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = pid_t(checked_call(SYS_getpid));
  info.si_uid = ::getuid();
  info.si_value = value;
  return send_signal(pid, signal, [&](pid_t real) { return checked_call(SYS_rt_sigqueueinfo, real, signal, &info); });
}

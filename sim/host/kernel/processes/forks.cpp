// SPDX-License-Identifier: Apache-2.0
// Forks. Each new process attaches itself. The process that made it announces it to the simulator, so that the order of
// attaching does not depend on the real scheduler. Functions for which the C library uses a fork of its own are built
// on the interposed fork() instead.

#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utmp.h>

#include "sim/host/kernel/files/event_descriptors.h"
#include "sim/host/kernel/ipc/addresses.h"
#include "sim/host/kernel/processes/children.h"
#include "sim/host/kernel/processes/threads.h"
#include "sim/host/kernel/signals/child_signal.h"
#include "sim/host/shim/attach.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/timer_calls.h"

RNICSIM_NEXT(fork);
RNICSIM_NEXT(_Fork);
RNICSIM_NEXT(daemon);
RNICSIM_NEXT(forkpty);

using namespace rnicsim;
using namespace rnicsim::clock;

namespace {

// A new process has neither slot nor turn until it attaches. Registered first, so that `abandon` runs before the
// program's own handlers of fork.
__attribute__((constructor)) void register_fork() { ::pthread_atfork(nullptr, nullptr, abandon); }

bool use_null_device() {
  const int null = ::open("/dev/null", O_RDWR);
  struct stat file {};
  const bool is_device = null >= 0 && ::fstat(null, &file) == 0 && S_ISCHR(file.st_mode);
  for (int fd = STDIN_FILENO; is_device && fd <= STDERR_FILENO; ++fd) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
  return is_device;
}

}  // namespace

template <class Fork>
static pid_t fork_by(const Fork& fork) {
  if (own_slot() == nullptr) return fork();
  const auto parent = pid_t(checked_call(SYS_getpid));
  const pid_t child = fork();
  if (child < 0) return child;
  if (child > 0) return announce(abi::Call::forked, child);
  abandon();
  forget_children();
  forget_child_signal();
  forget_calls();
  forget_other_threads();
  forget_other_waiters();
  attach(abi::Hello::kFork, std::uint32_t(parent));
  tell_of_child_action();
  take_inherited_signals();
  return 0;
}
RNICSIM_EXPORT pid_t fork() noexcept { return fork_by(next_fork); }
// fork() without the handlers of pthread_atfork(3).
RNICSIM_EXPORT pid_t _Fork() noexcept { return fork_by(next__Fork); }
// A child of the real vfork() would share its parent's memory, and so its slot: the child gets memory of its own.
RNICSIM_EXPORT pid_t vfork() noexcept { return ::fork(); }

RNICSIM_EXPORT int daemon(int stays, int keeps_descriptors) noexcept {
  if (session() == nullptr) return next_daemon(stays, keeps_descriptors);
  const pid_t child = ::fork();
  if (child > 0) ::_exit(0);
  if (child < 0 || ::setsid() < 0) return -1;
  if (stays == 0 && ::chdir("/") != 0) return -1;
  return keeps_descriptors != 0 || use_null_device() ? 0 : -1;
}

RNICSIM_EXPORT int forkpty(int* master, char* name, const termios* terminal, const winsize* size) noexcept {
  if (session() == nullptr) return next_forkpty(master, name, terminal, size);
  int terminal_end = -1;
  if (::openpty(master, &terminal_end, name, terminal, size) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(*master);
    if (::login_tty(terminal_end) != 0) ::_exit(1);
    return 0;
  }
  ::close(terminal_end);
  if (child < 0) ::close(*master);
  return child;
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/child_signal.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "sim/host/kernel/processes/children.h"
#include "sim/host/kernel/signals/our_signals.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sigaction);

namespace rnicsim::clock {
namespace {

constinit struct sigaction program_action {};
constinit std::atomic<bool> due{false};
constinit siginfo_t due_info{};  // data of the first signal that is not handled yet

bool is_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_raised_here(const siginfo_t& info) {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == static_cast<void*>(&due);
}
// The simulator's own SIGCHLD, for a thread that is blocked in the real kernel.
bool is_interrupt(const siginfo_t& info) {
  return info.si_code == SI_TKILL && info.si_pid != pid_t(raw_call(SYS_getpid));
}
// The real kernel's report of a child's end. In simulated time the child ends at another time.
bool is_real_end(const siginfo_t& info) {
  const bool ended = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  return ended && find_child_outside() == nullptr;
}

// The first child that has ended, with the pid that the program knows.
void describe_child(siginfo_t& info) {
  siginfo_t ended{};
  if (raw_call(SYS_waitid, P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT, nullptr) == 0 && ended.si_pid != 0)
    info = ended;
  if (const Child* child = find_real_child(info.si_pid)) info.si_pid = child->virtual_pid;
}

void install(const struct sigaction& action);

enum class Meaning { nothing, child_ended, interrupt, other };

// A blocked signal is pending only once: a SIGCHLD of the real kernel may stand for the one that was raised here.
Meaning meaning_of(const siginfo_t& info) {
  if (!simulated()) return Meaning::other;
  if (is_raised_here(info) || is_real_end(info)) return due.exchange(false) ? Meaning::child_ended : Meaning::nothing;
  return is_interrupt(info) ? Meaning::interrupt : Meaning::other;
}

void call_handler(struct sigaction action, int signal, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_NODEFER) == 0) ::sigaddset(&action.sa_mask, SIGCHLD);
  const MaskedFor masked(action);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else if (is_handler(action)) {
    action.sa_handler(signal);
  }
}

void on_child(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const Meaning meaning = meaning_of(*info);
  if (meaning != Meaning::nothing) {
    const struct sigaction action = program_action;
    if (meaning == Meaning::child_ended) *info = due_info;
    if (meaning == Meaning::interrupt) describe_child(*info);
    if ((action.sa_flags & int(SA_RESETHAND)) != 0) install({});
    call_handler(action, signal, info, context);
  }
  errno = saved;
}

void install(const struct sigaction& action) {
  constexpr int kKept = SA_ONSTACK | SA_NOCLDSTOP | SA_NOCLDWAIT;
  program_action = action;
  struct sigaction real = action;
  if (is_handler(action)) {
    real.sa_sigaction = on_child;
    // The real kernel sends SIGCHLD at any time: a signal that is not passed on must interrupt no call and block no
    // signal.
    real.sa_flags = (action.sa_flags & kKept) | SA_SIGINFO | SA_RESTART | SA_NODEFER;
    ::sigemptyset(&real.sa_mask);
  }
  next_sigaction(SIGCHLD, &real, nullptr);
  tell_of_child_action();
}

}  // namespace

int set_child_action(const struct sigaction* action, struct sigaction* old) {
  const struct sigaction before = program_action;
  if (action != nullptr) install(*action);
  if (old != nullptr) *old = before;
  return 0;
}

void tell_of_child_action() {
  if (!simulated()) return;
  const bool tells_of_none = (program_action.sa_flags & SA_NOCLDSTOP) != 0;
  std::atomic_ref(session()->header().no_child_stops).store(tells_of_none ? 1 : 0);
}

void forget_child_signal() { due = false; }

bool child_signal_waits() { return due; }

// While SIGCHLD is blocked, only the data of the first one are kept: of a child's end, or of a signal by kill(2).
void raise_child_signal(const siginfo_t& told) {
  if (!due) due_info = told;
  due = true;
  siginfo_t info{};
  info.si_signo = SIGCHLD;
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = &due;
  raw_call(SYS_rt_tgsigqueueinfo, raw_call(SYS_getpid), raw_call(SYS_gettid), SIGCHLD, &info);
}

}  // namespace rnicsim::clock

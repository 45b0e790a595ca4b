// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/signals.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "sim/host/kernel/signals/child_signal.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sigaction);
RNICSIM_NEXT(sigprocmask);
RNICSIM_NEXT(pthread_sigmask);

namespace rnicsim::clock {
namespace {

bool taken = false;
std::array<struct sigaction, kOurSignals.size()> kept_actions{};

bool is_ours(int signal) { return taken && std::ranges::find(kOurSignals, signal) != kOurSignals.end(); }
struct sigaction& kept(int signal) {
  return kept_actions[std::size_t(std::ranges::find(kOurSignals, signal) - kOurSignals.begin())];
}

// True: the program or the default action ignores the signal.
bool is_discarded(int signal) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0) return false;
  const bool is_by_default = signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
  return action.sa_handler == SIG_IGN || (action.sa_handler == SIG_DFL && is_by_default);
}

}  // namespace

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = kept(signal);
  const MaskedFor masked(action);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else if (action.sa_handler == SIG_DFL) {
    struct sigaction fatal {};
    next_sigaction(signal, &fatal, nullptr);
    // A synchronous fault happens again on return, and ends the process. A signal that was sent is sent again.
    if (info->si_code <= 0) checked_call(SYS_tgkill, checked_call(SYS_getpid), checked_call(SYS_gettid), signal);
  } else if (action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
  }
}

void take_signal(int signal, SignalHandler* handler) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  // SA_NODEFER: a counter read inside a handler faults, too, and a handler of the program may run within this library's
  // (SIGALRM, raised in a call) and be subject to a spin check.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK;
  next_sigaction(signal, &action, &kept(signal));
  if (signal == kLookSignal) kept(signal) = {};  // never called: the signal is this library's alone
  taken = true;
}

void unblock_ours() {
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int signal : kOurSignals) ::sigaddset(&ours, signal);
  next_sigprocmask(SIG_UNBLOCK, &ours, nullptr);
}

std::uint64_t bits_of(const sigset_t& set) {
  std::uint64_t bits;
  memcpy(&bits, &set, sizeof bits);
  return bits;
}

sigset_t set_from(std::uint64_t bits) {
  sigset_t set;
  ::sigemptyset(&set);
  memcpy(&set, &bits, sizeof bits);
  return set;
}

void take_unblocked(const sigset_t& mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || (slot->pending & ~bits_of(mask)) == 0) return;
  call(*slot, abi::Call::take_signals, {bits_of(mask)});
}

MaskedWait::MaskedWait(const sigset_t* mask) : changes_(mask != nullptr) {
  if (!changes_) return;
  sigset_t waiting;
  ::sigpending(&waiting);
  for (int signal = 1; signal < NSIG; ++signal)
    interrupted_ |= ::sigismember(&waiting, signal) == 1 && ::sigismember(mask, signal) == 0 && !is_discarded(signal);
  const sigset_t held_back = allowed(*mask);
  next_pthread_sigmask(SIG_SETMASK, &held_back, &before_);
  take_unblocked(*mask);
}

MaskedWait::~MaskedWait() {
  if (!changes_) return;
  const int saved = errno;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

bool MaskedWait::interrupted() const {
  if (interrupted_) errno = EINTR;
  return interrupted_;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (signal == SIGCHLD && simulated()) return set_child_action(action, old);
  if (!is_ours(signal)) {
    if (!taken || action == nullptr) return next_sigaction(signal, action, old);
    struct sigaction filtered = *action;
    filtered.sa_mask = allowed(action->sa_mask);
    return next_sigaction(signal, &filtered, old);
  }
  if (old != nullptr) *old = kept(signal);
  if (action != nullptr) kept(signal) = *action;
  return 0;
}

RNICSIM_EXPORT sighandler_t signal(int signal, sighandler_t handler) noexcept {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, &old) != 0) return SIG_ERR;
  return old.sa_handler;
}

// Both functions are pthread_sigmask(3), except for the way in which they report an error.
template <class Next>
static int set_mask(const Next& next, int how, const sigset_t* set, sigset_t* old) {
  if (!taken || set == nullptr) return next(how, set, old);
  const sigset_t filtered = how == SIG_UNBLOCK ? *set : allowed(*set);
  const int error = next(how, &filtered, old);
  sigset_t mask;
  if (error == 0 && how != SIG_BLOCK && next_pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0) take_unblocked(mask);
  return error;
}
RNICSIM_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return set_mask(next_sigprocmask, how, set, old);
}
RNICSIM_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return set_mask(next_pthread_sigmask, how, set, old);
}

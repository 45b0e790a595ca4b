// SPDX-License-Identifier: Apache-2.0
// Functions of System V and BSD that block and catch signals. The C library's own change the mask without an interposed
// call.

#include <signal.h>
#include <string.h>

#include "sim/host/shim/next.h"

using namespace rnicsim::clock;

namespace {

// A set of the first 32 signals, one bit each.
sigset_t set_of(int bits) {
  sigset_t set;
  ::sigemptyset(&set);
  memcpy(&set, &bits, sizeof bits);
  return set;
}
int bits_of(const sigset_t& set) {
  int bits;
  memcpy(&bits, &set, sizeof bits);
  return bits;
}
int change(int how, int bits) {
  const sigset_t set = set_of(bits);
  sigset_t old;
  return ::sigprocmask(how, &set, &old) == 0 ? bits_of(old) : -1;
}

// -1: no such signal.
int change_for(int how, int signal, sigset_t* old = nullptr) {
  sigset_t set;
  ::sigemptyset(&set);
  return ::sigaddset(&set, signal) != 0 ? -1 : ::sigprocmask(how, &set, old);
}

}  // namespace

RNICSIM_EXPORT int sighold(int signal) noexcept { return change_for(SIG_BLOCK, signal); }
RNICSIM_EXPORT int sigrelse(int signal) noexcept { return change_for(SIG_UNBLOCK, signal); }
RNICSIM_EXPORT int sigignore(int signal) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  return ::sigaction(signal, &action, nullptr);
}
RNICSIM_EXPORT sighandler_t sigset(int signal, sighandler_t handler) noexcept {
  struct sigaction action {
  }, old{};
  sigset_t before;
  const bool holds = handler == SIG_HOLD;
  action.sa_handler = handler;
  if (::sigaction(signal, holds ? nullptr : &action, &old) != 0 ||
      change_for(holds ? SIG_BLOCK : SIG_UNBLOCK, signal, &before) != 0)
    return SIG_ERR;
  return ::sigismember(&before, signal) == 1 ? SIG_HOLD : old.sa_handler;
}

RNICSIM_EXPORT int own_sigblock(int mask) asm("sigblock");
int own_sigblock(int mask) { return change(SIG_BLOCK, mask); }
RNICSIM_EXPORT int own_sigsetmask(int mask) asm("sigsetmask");
int own_sigsetmask(int mask) { return change(SIG_SETMASK, mask); }
RNICSIM_EXPORT int own_siggetmask() asm("siggetmask");
int own_siggetmask() { return change(SIG_BLOCK, 0); }

// BSD's sigpause() takes a mask, that of X/Open a signal.
RNICSIM_EXPORT int own_sigpause(int mask) asm("sigpause");
int own_sigpause(int mask) {
  const sigset_t set = set_of(mask);
  return ::sigsuspend(&set);
}
RNICSIM_EXPORT int own_xpg_sigpause(int signal) asm("__xpg_sigpause");
int own_xpg_sigpause(int signal) {
  sigset_t mask;
  if (::sigprocmask(SIG_BLOCK, nullptr, &mask) != 0 || ::sigdelset(&mask, signal) != 0) return -1;
  return ::sigsuspend(&mask);
}

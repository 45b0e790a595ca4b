// SPDX-License-Identifier: Apache-2.0
// Waits for signals in simulated time.

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "sim/host/kernel/signals/child_signal.h"
#include "sim/host/kernel/signals/signal_records.h"
#include "sim/host/kernel/signals/signals.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sigsuspend);
RNICSIM_NEXT(sigpending);
RNICSIM_NEXT(sigtimedwait);
RNICSIM_NEXT(sigwaitinfo);
RNICSIM_NEXT(sigwait);

namespace rnicsim::clock {
namespace {

// Returns the signal's number, or -1 with errno.
int await(abi::ThreadSlot& slot, const sigset_t& set, siginfo_t* info, std::uint64_t deadline) {
  charge(slot, abi::CpuCost::system_call);
  int error;
  do {
    siginfo_t outside;
    if (take_outside(set, outside)) {
      if (info != nullptr) *info = outside;
      return outside.si_signo;
    }
    error = call_cancellably(slot, abi::Call::await_signal, {bits_of(set), deadline});
  } while (error == ERESTART);
  if (error != 0) {
    errno = error;
    return -1;
  }
  abi::SignalRecord signal;
  memcpy(&signal, slot.output, sizeof signal);
  if (info != nullptr) *info = describe(signal);
  return int(signal.number);
}

}  // namespace

siginfo_t describe(const abi::SignalRecord& signal) {
  siginfo_t info{};
  info.si_signo = int(signal.number);
  info.si_code = signal.code;
  if (signal.number == SIGCHLD && signal.code > 0) {
    info.si_pid = pid_t(signal.pid);
    info.si_uid = signal.uid;
    info.si_status = int(signal.value);
    return info;
  }
  info.si_value.sival_ptr = reinterpret_cast<void*>(signal.value);
  if (signal.code == SI_TIMER) {
    info.si_timerid = int(signal.pid);
    info.si_overrun = int(signal.uid);
  } else {
    info.si_pid = pid_t(signal.pid);
    info.si_uid = signal.uid;
  }
  return info;
}

// (SIGCHLD of the real kernel for a child's end does not count.)
bool take_outside(const sigset_t& set, siginfo_t& info) {
  constexpr timespec kAtOnce{};
  sigset_t real = set;
  ::sigdelset(&real, SIGCHLD);
  return next_sigtimedwait(&real, &info, &kAtOnce) > 0;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sigtimedwait(set, info, timeout);
  if (timeout != nullptr && !valid(*timeout)) {
    errno = EINVAL;
    return -1;
  }
  return await(*slot, *set, info, timeout != nullptr ? after(slot->now, picoseconds(*timeout)) : abi::kForever);
}
RNICSIM_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (simulated_slot() == nullptr) return next_sigwaitinfo(set, info);
  return ::sigtimedwait(set, info, nullptr);
}
RNICSIM_EXPORT int sigwait(const sigset_t* set, int* signal) {
  if (simulated_slot() == nullptr) return next_sigwait(set, signal);
  for (;;) {
    const int came = ::sigtimedwait(set, nullptr, nullptr);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0) return errno;
    *signal = came;
    return 0;
  }
}

RNICSIM_EXPORT int sigsuspend(const sigset_t* mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sigsuspend(mask);
  charge(*slot, abi::CpuCost::system_call);
  const MaskedWait masked(mask);
  if (!masked.interrupted()) call_cancellably(*slot, abi::Call::sleep, {abi::kForever});
  errno = EINTR;
  return -1;
}

RNICSIM_EXPORT int sigpending(sigset_t* set) noexcept {
  const int result = next_sigpending(set);
  const abi::ThreadSlot* slot = simulated_slot();
  if (result != 0 || slot == nullptr) return result;
  if (!child_signal_waits()) ::sigdelset(set, SIGCHLD);
  for (int signal = 1; signal < NSIG; ++signal)
    if ((slot->pending >> (signal - 1) & 1) != 0) ::sigaddset(set, signal);
  return 0;
}

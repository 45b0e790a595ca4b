// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/kill.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "sim/host/kernel/ipc/addresses.h"
#include "sim/host/kernel/processes/children.h"
#include "sim/host/kernel/processes/process.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/kernel/processes/threads.h"
#include "sim/host/kernel/signals/child_signal.h"
#include "sim/host/kernel/signals/signal_records.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(pthread_kill);
RNICSIM_NEXT(pthread_sigqueue);
RNICSIM_NEXT(raise);
RNICSIM_NEXT(tgkill);

namespace rnicsim::clock {
namespace {

constexpr pid_t kInit = 1;

int fail(int error) {
  errno = error;
  return -1;
}

// True: this process, its parent, a child, or the group of one of them.
bool is_known(pid_t pid) {
  if (pid == 0) return true;
  const pid_t wanted = pid < 0 ? -pid : pid;
  const auto& header = session()->header();
  return wanted == pid_t(header.virtual_pid) || wanted == pid_t(header.virtual_parent_pid) ||
         find_child(wanted) != nullptr;
}

long send_really(pid_t real, const abi::SignalRecord& signal) {
  if (signal.code != SI_QUEUE) return checked_call(SYS_kill, real, signal.number);
  siginfo_t info{};
  info.si_signo = int(signal.number);
  info.si_code = SI_QUEUE;
  info.si_pid = pid_t(checked_call(SYS_getpid));
  info.si_uid = signal.uid;
  info.si_value.sival_ptr = reinterpret_cast<void*>(signal.value);
  return checked_call(SYS_rt_sigqueueinfo, real, signal.number, &info);
}

// The real kernel delivers the signal at any time, not in simulated time. The simulator is told of signals to other
// processes before they are sent, because the signal may end this process, too.
int send_outside(pid_t real, const abi::SignalRecord& signal) {
  // Signal 0 only asks whether the receiver exists.
  const std::uint32_t sent = signal.number != 0 && real != pid_t(checked_call(SYS_getpid)) ? 1 : 0;
  const std::atomic_ref counter(session()->header().signals_sent);
  counter.fetch_add(sent);
  const auto result = int(send_really(real, signal));
  if (result != 0) counter.fetch_sub(sent);
  return result;
}

// `thread`: a thread of this process, or 0.
int send_within(abi::ThreadSlot& slot, pid_t pid, pid_t thread, const abi::SignalRecord& signal) {
  charge(slot, abi::CpuCost::system_call);
  memcpy(slot.input, &signal, sizeof signal);
  slot.input_bytes = sizeof signal;
  const auto process = std::uint64_t(std::int64_t(pid));
  const int error = call_without_signals(slot, abi::Call::send_signal, {process, std::uint64_t(thread)});
  const Child* child = error == ESRCH && thread == 0 ? find_child(pid < 0 ? -pid : pid) : nullptr;
  const bool is_outside = child != nullptr && child->outside;
  const bool is_real = error == 0 && slot.value == 1;
  const auto real = pid_t(slot.argument[2]);
  raise_signals(slot);
  if (is_outside) return send_outside(real_pid_of(pid), signal);
  if (is_real) return send_outside(real, signal);
  return error == 0 ? 0 : fail(error);
}

int send_signal(pid_t pid, const abi::SignalRecord& signal) {
  if (!simulated()) return int(send_really(pid, signal));
  if (signal.number > _NSIG - 1) return fail(EINVAL);
  // 1 and -1 are refused: the simulator and other processes of this machine are not on the simulated host.
  const pid_t wanted = pid < 0 ? -pid : pid;
  if (wanted == kInit) return fail(EPERM);
  if (abi::ThreadSlot* slot = simulated_slot()) return send_within(*slot, pid, 0, signal);
  // In a handler without its thread's turn the simulator cannot be asked.
  return is_known(pid) ? send_outside(real_pid_of(pid), signal) : fail(ESRCH);
}

abi::SignalRecord record(int signal, int code) {
  return {.number = std::uint32_t(signal), .code = code, .pid = std::uint32_t(::getpid()), .uid = ::getuid()};
}

}  // namespace

long signal_thread(pid_t process, pid_t thread, int signal) {
  if (unsigned(signal) >= _NSIG) return fail(EINVAL);
  const bool is_own = process == pid_t(session()->header().virtual_pid);
  const auto real = is_own ? real_tid_of(thread) : std::nullopt;
  if (!real) return fail(ESRCH);
  abi::ThreadSlot* slot = simulated_slot();
  if (slot != nullptr && signal != 0) return send_within(*slot, process, thread, record(signal, SI_TKILL));
  return checked_call(SYS_tgkill, raw_call(SYS_getpid), *real, signal);
}

void end_wait_of(abi::ThreadSlot& slot, const abi::ThreadSlot& cancelled) {
  const int saved = errno;
  send_within(slot, ::getpid(), pid_t(cancelled.virtual_tid), record(kCancelSignal, SI_TKILL));
  errno = saved;  // the thread may have ended
}

void raise_here(const abi::SignalRecord& signal) {
  if (signal.number == kCancelSignal) return;  // only ends a wait
  siginfo_t info = describe(signal);
  if (signal.number == SIGCHLD) return raise_child_signal(info);
  raw_call(SYS_rt_tgsigqueueinfo, raw_call(SYS_getpid), raw_call(SYS_gettid), signal.number, &info);
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

// Handlers may send signals, with or without their thread's turn: these functions look up nothing at their first use.
RNICSIM_EXPORT int kill(pid_t pid, int signal) noexcept { return send_signal(pid, record(signal, SI_USER)); }
RNICSIM_EXPORT int killpg(pid_t group, int signal) noexcept {
  if (group >= 0) return ::kill(-group, signal);
  errno = EINVAL;
  return -1;
}
RNICSIM_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  abi::SignalRecord queued = record(signal, SI_QUEUE);
  queued.value = std::uint64_t(reinterpret_cast<std::uintptr_t>(value.sival_ptr));
  return send_signal(pid, queued);
}

// Signals to a thread. Return 0 or errno.
static int send_to(pthread_t thread, const abi::SignalRecord& signal) {
  const int saved = errno;
  const int error =
      send_within(*simulated_slot(), ::getpid(), pid_t(slot_of(thread)->virtual_tid), signal) == 0 ? 0 : errno;
  errno = saved;
  return error;
}
static bool is_simulated(pthread_t thread, int signal) {
  const bool is_of_c_library = signal >= kCancelSignal && signal < SIGRTMIN;
  return signal > 0 && signal < _NSIG && !is_of_c_library && simulated_slot() != nullptr && slot_of(thread) != nullptr;
}
RNICSIM_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  if (!is_simulated(thread, signal)) return next_pthread_kill(thread, signal);
  return send_to(thread, record(signal, SI_TKILL));
}
RNICSIM_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const sigval value) noexcept {
  if (!is_simulated(thread, signal)) return next_pthread_sigqueue(thread, signal, value);
  abi::SignalRecord queued = record(signal, SI_QUEUE);
  queued.value = std::uint64_t(reinterpret_cast<std::uintptr_t>(value.sival_ptr));
  return send_to(thread, queued);
}
RNICSIM_EXPORT int raise(int signal) noexcept {
  if (!is_simulated(::pthread_self(), signal)) return next_raise(signal);
  const int error = send_to(::pthread_self(), record(signal, SI_TKILL));
  if (error == 0) return 0;
  errno = error;
  return -1;
}
RNICSIM_EXPORT int tgkill(pid_t process, pid_t thread, int signal) noexcept {
  return simulated() ? int(signal_thread(process, thread, signal)) : next_tgkill(process, thread, signal);
}

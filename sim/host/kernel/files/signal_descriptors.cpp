// SPDX-License-Identifier: Apache-2.0
// signalfd in simulated time. The descriptor is an eventfd, which the simulator counts up while a signal of the set is
// pending. A read returns the signals.

#include "sim/host/kernel/files/signal_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/signals/signal_records.h"
#include "sim/host/kernel/signals/signals.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/own_memory.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(signalfd);

namespace rnicsim::clock {
namespace {

constexpr std::uint64_t kNever = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);

int fail(int error) {
  errno = error;
  return -1;
}

signalfd_siginfo as_read(const siginfo_t& info) {
  signalfd_siginfo read{};
  read.ssi_signo = std::uint32_t(info.si_signo);
  read.ssi_errno = info.si_errno;
  read.ssi_code = info.si_code;
  if (info.si_code == SI_TIMER) {
    read.ssi_tid = std::uint32_t(info.si_timerid);
    read.ssi_overrun = std::uint32_t(info.si_overrun);
  } else {
    read.ssi_pid = std::uint32_t(info.si_pid);
    read.ssi_uid = info.si_uid;
  }
  if (info.si_signo == SIGCHLD && info.si_code > 0) {
    read.ssi_status = info.si_status;
  } else if (info.si_code == SI_TIMER || info.si_code == SI_QUEUE) {
    read.ssi_int = info.si_int;
    read.ssi_ptr = std::uint64_t(reinterpret_cast<std::uintptr_t>(info.si_ptr));
  }
  return read;
}

using Found = std::array<signalfd_siginfo, 128>;

// Takes pending signals, at most `most`: first those from outside the simulation. `set` becomes the watch's set.
std::size_t take_waiting(abi::ThreadSlot& slot, std::uint32_t signals, std::size_t most, Found& found,
                         std::uint64_t& set) {
  most = std::min(most, found.size());
  std::size_t count = 0;
  siginfo_t outside;
  while (count < most && take_outside(set_from(set), outside)) found[count++] = as_read(outside);
  if (call(slot, abi::Call::read_signals, {signals, most - count}) != 0) return count;
  for (std::size_t i = 0; i < slot.value; ++i) {
    abi::SignalRecord signal;
    memcpy(&signal, slot.output + i * sizeof signal, sizeof signal);
    found[count++] = as_read(describe(signal));
  }
  set = slot.argument[2];
  return count;
}

}  // namespace

ssize_t read_signals(int fd, std::uint32_t signals, std::span<const iovec> parts) {
  abi::ThreadSlot& slot = *simulated_slot();
  charge(slot, abi::CpuCost::system_call);
  const std::size_t room = bytes_of(parts) / sizeof(signalfd_siginfo);
  if (room == 0) return fail(EINVAL);
  Found found;
  std::uint64_t set = 0;
  if (call(slot, abi::Call::read_signals, {signals, 0}) == 0) set = slot.argument[2];
  for (;;) {
    std::size_t count = take_waiting(slot, signals, room, found, set);
    if (count == 0 && !blocks(fd)) return fail(EAGAIN);
    if (count == 0) {
      const int error = call_cancellably(slot, abi::Call::await_signal, {set, abi::kForever});
      if (error == ERESTART || (error == EINTR && restarts_after_signal())) continue;
      if (error != 0) return fail(error);
      abi::SignalRecord signal;
      memcpy(&signal, slot.output, sizeof signal);
      found[count++] = as_read(describe(signal));
    }
    const std::size_t bytes = count * sizeof found[0];
    return copy_to_parts(parts, found.data(), bytes) ? ssize_t(bytes) : fail(EFAULT);
  }
}

int watch_signals(int fd, std::uint64_t set, int flags) {
  abi::ThreadSlot& slot = *simulated_slot();
  static_assert(int(SFD_CLOEXEC) == int(EFD_CLOEXEC) && int(SFD_NONBLOCK) == int(EFD_NONBLOCK));
  if ((flags & ~(SFD_CLOEXEC | SFD_NONBLOCK)) != 0) return fail(EINVAL);
  charge(slot, abi::CpuCost::system_call);
  set &= ~kNever;
  if (fd != -1) {
    if (::fcntl(fd, F_GETFD) < 0) return fail(EBADF);
    const std::uint32_t signals = known(fd).value_or(KnownDescriptor{}).signals;
    if (signals == 0) return fail(EINVAL);
    const int error = call(slot, abi::Call::watch_signals, {signals, set, 1});
    return error == 0 ? fd : fail(error);
  }
  const int made = ::eventfd(0, flags);
  if (made < 0) return made;
  const bool sent = send_descriptors({&made, 1});
  const int error = sent ? call(slot, abi::Call::watch_signals, {0, set, 1}) : EMFILE;
  if (error == 0 && remember(made, {.signals = std::uint32_t(slot.value)})) return made;
  ::close(made);
  return fail(EMFILE);
}

long watch_signals_call(int fd, const void* set, size_t bytes, int flags) {
  std::uint64_t bits = 0;
  if (bytes != sizeof bits) return fail(EINVAL);
  if (!copy_in(&bits, set, sizeof bits)) return fail(EFAULT);
  return watch_signals(fd, bits, flags);
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int signalfd(int fd, const sigset_t* mask, int flags) noexcept {
  if (simulated_slot() == nullptr) return next_signalfd(fd, mask, flags);
  return int(watch_signals_call(fd, mask, sizeof(std::uint64_t), flags));
}

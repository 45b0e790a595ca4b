// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/kernel_signals.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include <cstdint>

#include "sim/host/kernel/signals/signals.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/signal_stack.h"

namespace rnicsim::clock {
namespace {

using KernelSet = std::uint64_t;

// struct sigaction of <asm/signal.h>. The C library uses that name for another structure.
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  KernelSet mask;
};
constexpr unsigned long kHasRestorer = 0x04000000;

sigset_t from_kernel(KernelSet set) {
  sigset_t result;
  ::sigemptyset(&result);
  memcpy(&result, &set, sizeof set);
  return result;
}
KernelSet to_kernel(const sigset_t& set) {
  KernelSet result;
  memcpy(&result, &set, sizeof result);
  return result;
}

long fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

long set_action(const Words& words) {
  const int signal = int(words[0]);
  const auto* wanted = reinterpret_cast<const KernelAction*>(words[1]);
  auto* old = reinterpret_cast<KernelAction*>(words[2]);
  if (words[3] != sizeof(KernelSet)) return fail(EINVAL);
  struct sigaction action {};
  struct sigaction before {};
  if (wanted != nullptr) {
    action.sa_handler = wanted->handler;
    action.sa_flags = int(wanted->flags & ~kHasRestorer);
    action.sa_mask = from_kernel(wanted->mask);
  }
  if (::sigaction(signal, wanted != nullptr ? &action : nullptr, &before) != 0) return -1;
  if (old != nullptr)
    *old = {before.sa_handler, static_cast<unsigned long>(unsigned(before.sa_flags)), nullptr,
            to_kernel(before.sa_mask)};
  return 0;
}

long change_mask(const Words& words, sigset_t& mask) {
  const auto* change = reinterpret_cast<const KernelSet*>(words[1]);
  auto* old = reinterpret_cast<KernelSet*>(words[2]);
  if (words[3] != sizeof(KernelSet)) return fail(EINVAL);
  const KernelSet before = to_kernel(mask);
  if (change != nullptr) {
    const KernelSet set = to_kernel(allowed(from_kernel(*change)));
    switch (words[0]) {
      case SIG_BLOCK: mask = from_kernel(before | set); break;
      case SIG_UNBLOCK: mask = from_kernel(before & ~set); break;
      case SIG_SETMASK: mask = from_kernel(set); break;
      default: return fail(EINVAL);
    }
  }
  if (old != nullptr) *old = before;
  if (change != nullptr) take_unblocked(mask);
  return 0;
}

long change_mask(const Words& words) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  if (change_mask(words, mask) != 0) return -1;
  if (words[1] != 0) ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  return 0;
}

long suspend(const Words& words) {
  if (words[1] != sizeof(KernelSet)) return fail(EINVAL);
  const sigset_t mask = allowed(from_kernel(*reinterpret_cast<const KernelSet*>(words[0])));
  return ::sigsuspend(&mask);
}

long await_signal(const Words& words) {
  if (words[3] != sizeof(KernelSet)) return fail(EINVAL);
  const sigset_t set = from_kernel(*reinterpret_cast<const KernelSet*>(words[0]));
  return ::sigtimedwait(&set, reinterpret_cast<siginfo_t*>(words[1]), reinterpret_cast<const timespec*>(words[2]));
}

long waiting_signals(const Words& words) {
  if (std::size_t(words[1]) > sizeof(KernelSet)) return fail(EINVAL);
  sigset_t set;
  if (::sigpending(&set) != 0) return -1;
  const KernelSet kernel_set = to_kernel(set);
  memcpy(reinterpret_cast<void*>(words[0]), &kernel_set, std::size_t(words[1]));
  return 0;
}

long change_signal_stack(const Words& words, ucontext_t& context) {
  const auto* wanted = reinterpret_cast<const stack_t*>(words[0]);
  const auto stands = std::uintptr_t(context.uc_mcontext.gregs[REG_RSP]);
  const auto used = set_signal_stack(wanted, reinterpret_cast<stack_t*>(words[1]), stands);
  if (used && wanted != nullptr) context.uc_stack = *used;
  return used ? 0 : -1;
}

// Continues at the code to which the C library's handlers return, which does not come back.
void return_from_signal(const ucontext_t& context) {
  KernelAction action{};
  raw_call(SYS_rt_sigaction, SIGSYS, nullptr, &action, sizeof(KernelSet));
  asm volatile("mov %0, %%rsp\n\tjmp *%1" : : "r"(context.uc_mcontext.gregs[REG_RSP]), "r"(action.restorer) : "memory");
  __builtin_unreachable();
}

}  // namespace rnicsim::clock

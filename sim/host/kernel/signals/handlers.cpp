// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/handlers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "sim/host/kernel/signals/signals.h"
#include "sim/host/shim/call_trap.h"
#include "sim/host/shim/counter/counter_sites.h"
#include "sim/host/shim/counter/tsc.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/shim/signal_stack.h"
#include "sim/host/shim/spin/instruction.h"
#include "sim/host/shim/spin/software_step.h"
#include "sim/host/shim/spin/spin.h"
#include "sim/host/shim/spin/timed_look.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(pthread_sigmask);

namespace rnicsim::clock {
namespace {

// gdb passes SIGSEGV on silently, because counter reads raise many; a real fault is shown to gdb as SIGTRAP. If the
// program has no handler, SIGTRAP is blocked until this library's handler returns: gdb then finds the thread where it
// faulted.
void stop_for_debugger(const siginfo_t& info) {
  char text[128];
  const int length =
      snprintf(text, sizeof text, "rnicsim: SIGSEGV at address %p; gdb stops for it by SIGTRAP\n", info.si_addr);
  raw_call(SYS_write, STDERR_FILENO, text, length);
  struct sigaction action {};
  ::sigaction(SIGSEGV, nullptr, &action);
  if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL) {
    sigset_t trap;
    ::sigemptyset(&trap);
    ::sigaddset(&trap, SIGTRAP);
    next_pthread_sigmask(SIG_BLOCK, &trap, nullptr);
  }
  raw_call(SYS_tgkill, raw_call(SYS_getpid), raw_call(SYS_gettid), SIGTRAP);
}

void on_segv(int signal, siginfo_t* info, void* context) {
  leave_software_step(std::uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]));
  const int saved = errno;
  abandon_look(context);
  if (!emulate_tsc(context)) {
    if (tool() == Tool::gdb) stop_for_debugger(*info);
    pass_on(signal, info, context);
  }
  errno = saved;
}

// True: the trap of a single step. A virtual machine may lose the bit of the debug register that marks it; the kernel
// then reports TRAP_BRKPT, which it does not report for a breakpoint instruction (SI_KERNEL).
bool is_step(const siginfo_t& info, void* context) {
  constexpr greg_t kTrapFlag = 1 << 8;
  const auto flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  return info.si_code == TRAP_TRACE || (info.si_code == TRAP_BRKPT && (flags & kTrapFlag) != 0);
}

bool is_breakpoint_of_ours(const siginfo_t& info, void* context) {
  if (info.si_code != SI_KERNEL) return false;
  return begin_look_at_mark(context) || resume_behind_counter_read(*static_cast<ucontext_t*>(context));
}

void on_trap(int signal, siginfo_t* info, void* context) {
  // A step that no spin check expects is this library's, too: if a check ended in a nested handler, the trap flag comes
  // back with the context to which that handler returns.
  if (is_step(*info, context)) return continue_look(context);
  if (is_breakpoint_of_ours(*info, context)) return;
  const int saved = errno;
  pass_on(signal, info, context);
  errno = saved;
}

void on_call(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  abandon_look(context);
  if (!emulate_call(*info, context)) pass_on(signal, info, context);
  errno = saved;
}

void on_look(int, siginfo_t*, void* context) {
  if (abi::ThreadSlot* slot = own_slot()) slot->asked = 0;
  if (simulated_slot() != nullptr) begin_look(context);
}

}  // namespace

void take_signals() {
  static bool taken = false;
  take_signal_stack();
  if (!taken) {
    prepare_decoder();
    prepare_looks();
    declare_look(reinterpret_cast<const void*>(&::sched_yield), 0);
    take_signal(SIGSEGV, on_segv);
    take_signal(SIGTRAP, on_trap);
    take_signal(SIGSYS, on_call);
    take_signal(kLookSignal, on_look);
    taken = true;
  }
  unblock_ours();
}

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// System calls about signals, with the kernel's structures: sets of eight bytes, and the kernel's struct sigaction. The
// C library's functions answer them. In the handler of a trapped system call, signal mask and signal stack are those of
// the interrupted context.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "sim/host/shim/call_words.h"

namespace rnicsim::clock {

long set_action(const Words& words);                                // rt_sigaction
long change_mask(const Words& words, sigset_t& mask);               // rt_sigprocmask
long change_mask(const Words& words);                               // the same for the calling thread
long suspend(const Words& words);                                   // rt_sigsuspend
long await_signal(const Words& words);                              // rt_sigtimedwait
long waiting_signals(const Words& words);                           // rt_sigpending
long change_signal_stack(const Words& words, ucontext_t& context);  // sigaltstack
[[noreturn]] void return_from_signal(const ucontext_t& context);    // rt_sigreturn

}  // namespace rnicsim::clock

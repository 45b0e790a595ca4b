// SPDX-License-Identifier: Apache-2.0
// Actions and masks of signals. Some signals are used by simulated time (handlers.h). A program's action for such a
// signal is kept, and runs when the signal has another cause; a program's mask never blocks them.
#pragma once

#include <signal.h>

#include <cstdint>

#include "sim/host/kernel/signals/our_signals.h"

namespace rnicsim::clock {

// From now on this library handles the signal.
using SignalHandler = void(int signal, siginfo_t* info, void* context);
void take_signal(int signal, SignalHandler* handler);
void unblock_ours();  // in each thread
// Runs the program's action, in this library's handler of a signal that has another cause.
void pass_on(int signal, siginfo_t* info, void* context);

// Sets another signal mask while the object lives, as ppoll(2) does.
class MaskedWait {
 public:
  explicit MaskedWait(const sigset_t* mask);  // null: the mask stays
  ~MaskedWait();
  MaskedWait(const MaskedWait&) = delete;
  // True, with errno EINTR: the new mask let a pending signal through, and the wait is over.
  bool interrupted() const;

 private:
  const bool changes_;
  bool interrupted_ = false;
  sigset_t before_;
};

// A set in the kernel's form: bit 0 is signal 1.
std::uint64_t bits_of(const sigset_t& set);
sigset_t set_from(std::uint64_t bits);
// Raises the thread's pending signals that `mask`, the mask from now on, does not block.
void take_unblocked(const sigset_t& mask);

}  // namespace rnicsim::clock

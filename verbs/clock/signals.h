// Actions and masks of signals, where some are simulated time's own (handlers.h): a program's actions for those are
// kept, and done for what is not ours; a program's masks do not hold them back.
#pragma once

#include <signal.h>

#include <cstdint>

#include "verbs/clock/our_signals.h"

namespace rnicsim::clock {

// From now on this signal is ours.
using SignalHandler = void(int signal, siginfo_t* info, void* context);
void take_signal(int signal, SignalHandler* handler);
void unblock_ours();  // in each thread
// What is not ours: as the program asked for. Of one of ours, in its handler.
void pass_on(int signal, siginfo_t* info, void* context);

// While it lives another mask holds, as in ppoll(2).
class MaskedWait {
 public:
  explicit MaskedWait(const sigset_t* mask);  // null: no other
  ~MaskedWait();
  MaskedWait(const MaskedWait&) = delete;
  // A signal that had been held back came with the mask: the wait is over, errno says EINTR.
  bool interrupted() const;

 private:
  const bool changes_;
  bool interrupted_ = false;
  sigset_t before_;
};

// As the kernel has it: bit 0 is the first signal.
std::uint64_t bits_of(const sigset_t& set);
sigset_t set_from(std::uint64_t bits);
// Of what waits for this thread, it is given what this mask, which holds from now on, lets through.
void take_unblocked(const sigset_t& mask);

}  // namespace rnicsim::clock

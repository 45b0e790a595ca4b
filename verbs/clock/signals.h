// The signals that simulated time needs for itself: SIGSEGV (counter reads), SIGSYS (system calls by instruction),
// kLookSignal (the simulator asks what a thread that does not come back is doing) and SIGTRAP (single steps while it
// answers). A program's own handlers are kept, and called for what is not ours; kLookSignal has none.
#pragma once

#include <signal.h>

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

using abi::kLookSignal;

void take_signals();  // in each thread, before the simulator may send it one
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
// Without ours.
sigset_t allowed(const sigset_t& set);

}  // namespace rnicsim::clock

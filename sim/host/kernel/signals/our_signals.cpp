// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/signals/our_signals.h"

#include "sim/host/shim/next.h"

RNICSIM_NEXT(pthread_sigmask);

namespace rnicsim::clock {

sigset_t allowed(const sigset_t& set) {
  sigset_t result = set;
  for (const int signal : kOurSignals) ::sigdelset(&result, signal);
  return result;
}

MaskedFor::MaskedFor(const struct sigaction& action) {
  const sigset_t set = allowed(action.sa_mask);
  next_pthread_sigmask(SIG_BLOCK, &set, &before_);
}
MaskedFor::~MaskedFor() { next_pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace rnicsim::clock

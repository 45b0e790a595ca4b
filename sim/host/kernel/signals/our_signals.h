// SPDX-License-Identifier: Apache-2.0
// The signals that this library handles itself: masks and handlers of programs do not hold them back.
#pragma once

#include <signal.h>

#include <array>

#include "model/abi/attach.h"

namespace rnicsim::clock {

using abi::kLookSignal;

inline constexpr std::array kOurSignals{SIGSEGV, SIGTRAP, SIGSYS, kLookSignal};

// The set without this library's signals.
sigset_t allowed(const sigset_t& set);

// Blocks the signals that the program wants blocked while its handler runs.
class MaskedFor {
 public:
  explicit MaskedFor(const struct sigaction& action);
  ~MaskedFor();
  MaskedFor(const MaskedFor&) = delete;
  MaskedFor& operator=(const MaskedFor&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rnicsim::clock

// The signals that simulated time takes for itself: masks and handlers of programs do not hold them back.
#pragma once

#include <signal.h>

#include <array>

#include "model/abi/attach.h"

namespace rnicsim::clock {

using abi::kLookSignal;

inline constexpr std::array kOurSignals{SIGSEGV, SIGTRAP, SIGSYS, kLookSignal};

// The set without our signals.
sigset_t allowed(const sigset_t& set);

// Blocks what `action` asks to be blocked while its handler runs.
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

// Signals as the simulator tells of them, and as programs are told.
#pragma once

#include <signal.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

siginfo_t describe(const abi::SignalRecord& signal);
// One of the set that came from outside the simulation, and waits in the real kernel.
bool take_outside(const sigset_t& set, siginfo_t& info);

}  // namespace rnicsim::clock

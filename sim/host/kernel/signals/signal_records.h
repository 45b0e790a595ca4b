// SPDX-License-Identifier: Apache-2.0
// The simulator's signal records, as programs see them.
#pragma once

#include <signal.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

siginfo_t describe(const abi::SignalRecord& signal);
// Takes a signal of the set that came from outside the simulation and is pending in the real kernel. False: none.
bool take_outside(const sigset_t& set, siginfo_t& info);

}  // namespace rnicsim::clock

// clone(2): what it makes as fork(2) or vfork(2) does is a fork of ours. All else (threads that the C library does not
// know, processes that share memory or open files, name spaces) has no place in the simulation, and is refused.
#pragma once

#include "verbs/clock/real_calls.h"

namespace rnicsim::clock {

long clone_call(const Words& words);  // as SYS_clone has them
long refuse_clone(long number);       // ENOSYS, and the run tells of it

}  // namespace rnicsim::clock

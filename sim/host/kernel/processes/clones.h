// SPDX-License-Identifier: Apache-2.0
// clone(2). Calls with the effect of fork(2) or vfork(2) become the interposed fork(). All others are refused, because
// the simulator cannot follow their result: threads that the C library does not know, processes that share memory or
// open files, new namespaces.
#pragma once

#include "sim/host/shim/call_words.h"

namespace rnicsim::clock {

long clone_call(const Words& words);  // arguments in the order of SYS_clone
long refuse_clone(long number);       // fails with ENOSYS; the simulator reports the call

}  // namespace rnicsim::clock

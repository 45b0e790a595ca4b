// SPDX-License-Identifier: Apache-2.0
// The table of system calls that are simulated, by number: a call that a program makes by its number is answered as the
// interposed function of the C library answers.
#pragma once

#include "model/abi/attach.h"
#include "sim/host/shim/call_words.h"

namespace rnicsim::clock {

using CallHandler = long(abi::ThreadSlot& slot, const Words& words);  // -1 with errno

// nullptr: the call is not in the table.
CallHandler* handler_of(long number);

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// System calls by number. Calls that are simulated by name are simulated by number, too. All others go to the real
// kernel; those that may tell of the real machine end reproducibility.
#pragma once

#include "model/abi/attach.h"
#include "sim/host/shim/call_words.h"

namespace rnicsim::clock {

long answer_call(abi::ThreadSlot& slot, long number, const Words& words);  // -1 with errno

}  // namespace rnicsim::clock

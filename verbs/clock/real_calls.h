// System calls by number. Calls that are simulated by name are simulated by number, too. All others go to the real
// kernel; those that may tell of the real machine end reproducibility.
#pragma once

#include "model/abi/attach.h"

namespace rnicsim::clock {

using Words = long[6];

long answer_call(abi::ThreadSlot& slot, long number, const Words& words);  // -1 with errno
void note_real_call(long number);

}  // namespace rnicsim::clock

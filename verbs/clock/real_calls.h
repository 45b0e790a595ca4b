// System calls by number: those that are simulated under their names are simulated so, too. The others go to the real
// kernel, and end reproducibility if they may tell of the real machine.
#pragma once

#include "model/abi/attach.h"

namespace rnicsim::clock {

using Words = long[6];

long answer_call(abi::ThreadSlot& slot, long number, const Words& words);  // -1: errno
void note_real_call(long number);

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
// Looks in simulated time. A look is one check of memory that the device or another thread writes: an empty poll, a
// yield. A look costs time, and sees what was written until CpuCost::detect before its end. The simulator tells until
// when nothing can be written: looks that end before that time need no turn.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Call in this order: begin_timed_look(); timed_look(), only if memory holds nothing new; end_timed_look().
void begin_timed_look(abi::ThreadSlot& slot, abi::CpuCost cost);
// After this call memory is as the CPU sees it at the end of the look. `site` is the return address of the looking
// function.
void timed_look(abi::ThreadSlot& slot, const void* site);
// If the look found something that was visible before its end, the look ended at that earlier time.
void end_timed_look(abi::ThreadSlot& slot, bool found);

// Call before the thread acts on the device, or on a descriptor for which others wait. The effect can be seen
// CpuCost::detect later at the earliest; looks that end after that need a turn.
void end_quiet_time(abi::ThreadSlot& slot);

// Declares a function that only looks, takes three arguments at most, and returns `nothing` if it found nothing. A loop
// that makes no other calls can be proved to wait (timed_loop.h).
void declare_look(const void* function, long nothing);
struct LookFunction {
  const void* function;
  long nothing;
};
const LookFunction* look_function_at(std::uintptr_t place);  // nullptr: none

// True: the calling thread's last look found nothing, and the thread did nothing else since.
bool has_just_looked_in_vain();
// most_looks_from() tells how many looks of a thread that returned to `site` are followed. note_proof() records the
// result: instructions and looks of a complete round; 0 steps: no proof.
int most_looks_from(std::uintptr_t site);
void note_proof(std::uintptr_t site, int steps, int looks);

}  // namespace rnicsim::clock

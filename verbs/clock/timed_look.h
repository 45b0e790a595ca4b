// Looks of a thread at memory that the device or another thread writes, in simulated time: an empty poll, a yield. Each
// costs time, and sees what was written until CpuCost::detect before its end. The simulator says until when nothing can
// be written: looks that end before that need no turn.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// In this order; the second only if there was nothing to be found, the third always.
void begin_timed_look(abi::ThreadSlot& slot, abi::CpuCost cost);
// Memory is as the CPU sees it at the end of the look. `site`: the instruction to which the looking function returns.
void timed_look(abi::ThreadSlot& slot, const void* site);
// What the look found was perhaps visible before its end: then the look ended at that time.
void end_timed_look(abi::ThreadSlot& slot, bool found);

// The calling thread is about to act on the device, or on a descriptor for which others wait. What follows from that is
// seen CpuCost::detect later at the earliest.
void end_quiet_time(abi::ThreadSlot& slot);

// `function` only looks, as above, takes three arguments at most, and returns `nothing` if it found nothing. A loop
// that makes no other calls may be proved to wait (timed_loop.h).
void declare_look(const void* function, long nothing);
struct LookFunction {
  const void* function;
  long nothing;
};
const LookFunction* look_function_at(std::uintptr_t place);  // nullptr: there is none

// Whether the last look of the calling thread found nothing, and the thread did nothing else since.
bool has_just_looked_in_vain();
// How many looks of a thread that returned to `site` are to be followed; and what became of it: instructions and looks
// until a round was complete, or 0 for no proof.
int most_looks_from(std::uintptr_t site);
void note_proof(std::uintptr_t site, int steps, int looks);

}  // namespace rnicsim::clock

// Steps of a thread that is looked at (spin.h) without its processor: one that traps costs microseconds. Loops that
// wait are made of a few kinds of instructions.
#pragma once

#include <ucontext.h>

#include "verbs/clock/instruction.h"

namespace rnicsim::clock {

// Executes the instruction, which is the next at `context`. False: nothing happened, the processor has to do it,
// because it is of another kind, or faults.
bool step_in_software(const Instruction& instruction, ucontext_t& context);

// In SIGSEGV's handler: a step that faulted ends, and so does this call; it returns if there is none.
void leave_software_step();

}  // namespace rnicsim::clock

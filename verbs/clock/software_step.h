// Steps of a thread that is looked at (spin.h) without its processor: one that traps costs microseconds. Loops that
// wait are made of a few kinds of instructions.
#pragma once

#include <ucontext.h>

#include "verbs/clock/instruction.h"

namespace rnicsim::clock {

// Executes the instruction, which is the next at `context`. False: nothing happened, the processor has to do it,
// because it is of another kind, or faults.
bool step_in_software(const Instruction& instruction, ucontext_t& context);

// In SIGSEGV's handler, where the thread stood: a step that faulted ends, and so does this call; it returns if there is
// none, or a handler that came in between has faulted.
void leave_software_step(std::uintptr_t place);

}  // namespace rnicsim::clock

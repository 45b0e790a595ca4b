// SPDX-License-Identifier: Apache-2.0
// Executes single instructions of a thread in software, during a spin check (spin.h): a step by the processor traps,
// which costs microseconds. Only the few kinds of instructions of which waiting loops consist are known.
#pragma once

#include <ucontext.h>

#include "sim/host/shim/spin/instruction.h"

namespace rnicsim::clock {

// Executes `instruction`, which is the next at `context`. False: nothing has changed; the processor has to execute the
// instruction, because it is of another kind or faults.
bool step_in_software(const Instruction& instruction, ucontext_t& context);

// Call in the handler of SIGSEGV, with the place of the fault. Ends the software step that faulted, and does not return
// then. Returns if no step is under way, or if a handler that interrupted the step has faulted.
void leave_software_step(std::uintptr_t place);

}  // namespace rnicsim::clock

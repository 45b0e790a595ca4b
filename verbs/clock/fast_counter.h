// Called from code that no compiler knows of: changes no register but the one of its result (built with
// -mgeneral-regs-only).
#pragma once

#include <cstdint>

namespace rnicsim::clock {

// The counter, its read charged; 0: it has to be read by the instruction, which traps.
__attribute__((no_caller_saved_registers)) std::uint64_t fast_counter();

}  // namespace rnicsim::clock

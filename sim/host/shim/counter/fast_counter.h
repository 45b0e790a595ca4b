// SPDX-License-Identifier: Apache-2.0
// Called by the generated code of counter_sites.h, which saves no registers: changes only the register of its result
// (built with -mgeneral-regs-only).
#pragma once

#include <cstdint>

namespace rnicsim::clock {

// The time-stamp counter, with the read charged. 0: the caller executes rdtsc, which traps.
__attribute__((no_caller_saved_registers)) std::uint64_t fast_counter();

}  // namespace rnicsim::clock

// The stack on which signal handlers run. Ours need more room than a program may have given its own (a frame with
// AVX-512 registers is 3.4 KB, and Rust's or a crash handler's stack has 8), so each simulated thread gets one of us,
// and sigaltstack() answers as if the program's stood there. A program's stack that is ample is used as it is.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

void take_signal_stack();     // of the calling thread
void release_signal_stack();  // when it ends

// Whether the calling handler's frame may lie just below what it interrupted, whose stack pointer stands there.
bool shares_stack_with(std::uintptr_t stands);

// sigaltstack(2) for a thread whose stack pointer stands there: the stack that is to be used from then on, if `wanted`
// is not null; nullopt: errno says why not.
std::optional<stack_t> set_signal_stack(const stack_t* wanted, stack_t* old, std::uintptr_t stands);

}  // namespace rnicsim::clock

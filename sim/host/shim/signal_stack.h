// SPDX-License-Identifier: Apache-2.0
// The stack on which signal handlers run. Handlers of this library need more room than a program may give its own
// stack: a frame with AVX-512 registers has 3.4 KB, and the stacks of Rust and of crash handlers have 8 KB. Each
// simulated thread therefore gets a larger stack, and sigaltstack() answers as if the program's stack were in use. A
// program's stack that is large enough is used itself.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

void take_signal_stack();     // for the calling thread
void release_signal_stack();  // when the thread ends

// True: the calling handler's frame may lie directly below the code that it interrupted, whose stack pointer is
// `stands`.
bool shares_stack_with(std::uintptr_t stands);

// sigaltstack(2) for a thread whose stack pointer is `stands`. Returns the stack to install if `wanted` is not null;
// nullopt: the call fails with errno.
std::optional<stack_t> set_signal_stack(const stack_t* wanted, stack_t* old, std::uintptr_t stands);

}  // namespace rnicsim::clock

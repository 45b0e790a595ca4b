// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace rnicsim::clock {

// read(2) of a signalfd. `signals` is the simulator's number of its signal watch.
ssize_t read_signals(int fd, std::uint32_t signals, std::span<const iovec> parts);
// signalfd4(2) with a mask of eight bytes, as the kernel has it.
int watch_signals(int fd, std::uint64_t set, int flags);
// The system call signalfd4(2).
long watch_signals_call(int fd, const void* set, size_t bytes, int flags);

}  // namespace rnicsim::clock

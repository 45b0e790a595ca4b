#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace rnicsim::clock {

// As read(2) of one (signalfd), whose number the simulator gave.
ssize_t read_signals(int fd, std::uint32_t signals, std::span<const iovec> parts);
// As signalfd4(2), whose mask is of eight bytes.
int watch_signals(int fd, std::uint64_t set, int flags);
// The system call.
long watch_signals_call(int fd, const void* set, size_t bytes, int flags);

}  // namespace rnicsim::clock

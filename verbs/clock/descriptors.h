// Waiting for descriptors in simulated time: the simulator watches copies of them, and the thread looks again itself.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Until one of them is ready or `deadline` (absolute, or abi::kForever): number ready, 0, or -1 with EINTR. Fills
// revents.
int wait_descriptors(abi::ThreadSlot& slot, std::span<pollfd> descriptors, std::uint64_t deadline);

// Before a call that would block on `fd`: true when the call may go ahead.
bool wait_ready(abi::ThreadSlot& slot, int fd, short events);

}  // namespace rnicsim::clock

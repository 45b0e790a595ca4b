// Threads of this process that wait for one another: on an address, in simulated time.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

inline constexpr std::uint64_t kEveryone = ~0ull;

// Until somebody wakes `address`; 0 or ETIMEDOUT. Between the look that made the caller wait and this no other thread
// runs.
int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline);
// At most so many, first come first woken; returns how many.
std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most);

}  // namespace rnicsim::clock

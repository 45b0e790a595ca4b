// Times of the simulated CPU, in picoseconds: of ThreadSlot::began and waited.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// What this clock of CPU time shows to the thread that asks: its own, its process's, or that of another process of the
// host or another thread of this one, by its number (clock_getcpuclockid(3), pthread_getcpuclockid(3)). Nothing: there
// is no such process or thread.
std::optional<std::uint64_t> cpu_time_on(abi::ThreadSlot& caller, clockid_t id);

// The real kernel's name for such a clock. Nothing: as above.
std::optional<clockid_t> real_cpu_clock(clockid_t id);

}  // namespace rnicsim::clock

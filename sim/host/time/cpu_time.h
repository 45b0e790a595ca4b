// SPDX-License-Identifier: Apache-2.0
// Simulated CPU time in ps, computed from ThreadSlot::began and ThreadSlot::waited.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Value of a CPU-time clock for the calling thread: the clock of the thread, of its process, of another process of the
// host or of another thread of the process (clock_getcpuclockid(3), pthread_getcpuclockid(3)). nullopt: no such process
// or thread.
std::optional<std::uint64_t> cpu_time_on(abi::ThreadSlot& caller, clockid_t id);

// The real kernel's number of the same clock. nullopt: no such process or thread.
std::optional<clockid_t> real_cpu_clock(clockid_t id);

}  // namespace rnicsim::clock

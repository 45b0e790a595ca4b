// SPDX-License-Identifier: Apache-2.0
// Converts simulated time, which is 0 at the start of the run, to the clocks that a program knows, and back.
#pragma once

#include <sys/time.h>
#include <time.h>

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

inline constexpr std::uint64_t kSecond = 1'000'000'000'000;  // in picoseconds
inline constexpr std::uint64_t kMillisecond = kSecond / 1'000;
inline constexpr std::uint64_t kMicrosecond = kSecond / 1'000'000;

// Seconds that a clock, not one of CPU time, shows at simulated time 0: wall clocks the epoch, others the time since
// the boot.
std::uint64_t zero_of(clockid_t clock);
inline bool is_of_cpu_time(clockid_t clock) {
  return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

// In ps. A duration that cannot be counted is kForever.
std::uint64_t picoseconds(const timespec& time);
std::uint64_t picoseconds(const timeval& time);
timespec to_timespec(std::uint64_t picoseconds);
timeval to_timeval(std::uint64_t picoseconds);
// valid(): a valid duration. valid_nanoseconds(): a valid point in time, which may lie before the clock's zero.
bool valid(const timespec& time);
bool valid_nanoseconds(const timespec& time);

// `now` plus `picoseconds`, kForever at most.
std::uint64_t after(std::uint64_t now, std::uint64_t picoseconds);
// The simulated time at which this clock shows `time`; 0: before the run.
std::uint64_t moment(clockid_t clock, const timespec& time);

}  // namespace rnicsim::clock

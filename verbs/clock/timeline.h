// From simulated time, which is 0 at the start of the run, to the clocks that a program knows, and back.
#pragma once

#include <sys/time.h>
#include <time.h>

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

inline constexpr std::uint64_t kSecond = 1'000'000'000'000;  // in picoseconds
inline constexpr std::uint64_t kMillisecond = kSecond / 1'000;
inline constexpr std::uint64_t kMicrosecond = kSecond / 1'000'000;

// What this clock, none of CPU time, shows at simulated time 0, in seconds: the wall clock an epoch, those that count
// from the boot the time since then.
std::uint64_t zero_of(clockid_t clock);
inline bool is_of_cpu_time(clockid_t clock) {
  return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

// Lengths of time and moments too far to be counted are kForever.
std::uint64_t picoseconds(const timespec& time);
std::uint64_t picoseconds(const timeval& time);
timespec to_timespec(std::uint64_t picoseconds);
timeval to_timeval(std::uint64_t picoseconds);
// As a length of time; as a moment, which may lie before the clock's zero.
bool valid(const timespec& time);
bool valid_nanoseconds(const timespec& time);

// The moment so much after `now`.
std::uint64_t after(std::uint64_t now, std::uint64_t picoseconds);
// The simulated time at which this clock shows `time`; 0 if it is past.
std::uint64_t moment(clockid_t clock, const timespec& time);

}  // namespace rnicsim::clock

// SPDX-License-Identifier: Apache-2.0
#include "sim/host/time/timeline.h"

#include <algorithm>

#include "sim/host/shim/session.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint64_t kMostSeconds = (abi::kForever - 1) / kSecond - 1;

std::uint64_t whole(time_t seconds, std::uint64_t rest) {
  if (seconds < 0) return 0;
  return std::uint64_t(seconds) > kMostSeconds ? abi::kForever : std::uint64_t(seconds) * kSecond + rest;
}

}  // namespace

std::uint64_t zero_of(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI: return session()->header().epoch;
    default: return session()->header().uptime;
  }
}

std::uint64_t picoseconds(const timespec& time) { return whole(time.tv_sec, std::uint64_t(time.tv_nsec) * 1000); }
std::uint64_t picoseconds(const timeval& time) {
  return whole(time.tv_sec, std::uint64_t(time.tv_usec) * kMicrosecond);
}
timespec to_timespec(std::uint64_t ps) { return {time_t(ps / kSecond), long(ps % kSecond / 1000)}; }
timeval to_timeval(std::uint64_t ps) { return {time_t(ps / kSecond), suseconds_t(ps % kSecond / kMicrosecond)}; }
bool valid(const timespec& time) { return time.tv_sec >= 0 && valid_nanoseconds(time); }
bool valid_nanoseconds(const timespec& time) { return time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000; }

std::uint64_t after(std::uint64_t now, std::uint64_t ps) {
  return ps >= abi::kForever - now ? abi::kForever : now + ps;
}

std::uint64_t moment(clockid_t clock, const timespec& time) {
  const auto zero = time_t(zero_of(clock));
  if (time.tv_sec < zero) return 0;
  return picoseconds(timespec{time.tv_sec - zero, time.tv_nsec});
}

}  // namespace rnicsim::clock

// The clocks of a simulated program: one clock behind every call, counting simulated time from the host's epoch.

#include <errno.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "verbs/clock/attach.h"
#include "verbs/clock/next.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(clock_gettime);
RNICSIM_NEXT(gettimeofday);
RNICSIM_NEXT(time);
RNICSIM_NEXT(clock);
RNICSIM_NEXT(times);
RNICSIM_NEXT(clock_getres);

namespace rnicsim::clock {
namespace {

constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

// Reads this thread's clock, at the cost of a read: picoseconds since the epoch of CLOCK_MONOTONIC (0 at the start).
std::uint64_t read_clock(abi::ThreadSlot& slot) {
  charge(slot, abi::CpuCost::clock_read);
  return slot.now;
}

bool is_wall_clock(clockid_t id) {
  return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI || id == CLOCK_REALTIME_ALARM;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int clock_gettime(clockid_t id, timespec* result) {
  abi::ThreadSlot* slot = simulated_slot();
  // Negative ids are other processes' and threads' CPU clocks, or devices: not ours to answer.
  if (slot == nullptr || id < 0) return next_clock_gettime(id, result);
  const std::uint64_t now = read_clock(*slot);
  result->tv_sec = time_t(now / kPicosecondsPerSecond) + (is_wall_clock(id) ? time_t(session()->header().epoch) : 0);
  result->tv_nsec = long(now % kPicosecondsPerSecond / 1000);
  return 0;
}

RNICSIM_EXPORT int clock_getres(clockid_t id, timespec* result) {
  if (simulated_slot() == nullptr || id < 0) return next_clock_getres(id, result);
  if (result != nullptr) *result = {0, 1};
  return 0;
}

RNICSIM_EXPORT int gettimeofday(timeval* result, void* zone) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_gettimeofday(result, zone);
  const std::uint64_t now = read_clock(*slot);
  result->tv_sec = time_t(session()->header().epoch + now / kPicosecondsPerSecond);
  result->tv_usec = suseconds_t(now % kPicosecondsPerSecond / 1'000'000);
  return 0;
}

RNICSIM_EXPORT time_t time(time_t* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_time(result);
  const auto seconds = time_t(session()->header().epoch + read_clock(*slot) / kPicosecondsPerSecond);
  if (result != nullptr) *result = seconds;
  return seconds;
}

// CPU time: a simulated processor is never taken away, so it is the time since the start.
RNICSIM_EXPORT clock_t clock() {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_clock();
  return clock_t(read_clock(*slot) / (kPicosecondsPerSecond / CLOCKS_PER_SEC));
}

RNICSIM_EXPORT clock_t times(tms* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_times(result);
  const auto ticks = clock_t(read_clock(*slot) / (kPicosecondsPerSecond / std::uint64_t(::sysconf(_SC_CLK_TCK))));
  if (result != nullptr) *result = {ticks, 0, 0, 0};
  return ticks;
}

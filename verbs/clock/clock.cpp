// The clocks of a simulated program: one clock behind every call, counting simulated time.

#include <errno.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "verbs/clock/next.h"
#include "verbs/clock/session.h"
#include "verbs/clock/timeline.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(clock_gettime);
RNICSIM_NEXT(gettimeofday);
RNICSIM_NEXT(time);
RNICSIM_NEXT(clock);
RNICSIM_NEXT(times);
RNICSIM_NEXT(getrusage);
RNICSIM_NEXT(clock_getres);
RNICSIM_NEXT(timespec_get);
static const rnicsim::clock::Next<int(timeb*)> next_ftime{"ftime"};

namespace rnicsim::clock {
namespace {

// Reads this thread's clock, at the cost of a read: simulated time.
std::uint64_t read_clock(abi::ThreadSlot& slot) {
  charge_clock_read(slot);
  return slot.now;
}

// What `id` shows.
timespec look_at(abi::ThreadSlot& slot, clockid_t id) {
  timespec result = to_timespec(read_clock(slot));
  result.tv_sec += time_t(zero_of(id));
  return result;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int clock_gettime(clockid_t id, timespec* result) {
  abi::ThreadSlot* slot = simulated_slot();
  // Negative ids are other processes' and threads' CPU clocks, or devices: not ours to answer.
  if (slot == nullptr || id < 0) return next_clock_gettime(id, result);
  *result = look_at(*slot, id);
  return 0;
}

RNICSIM_EXPORT int clock_getres(clockid_t id, timespec* result) {
  if (simulated_slot() == nullptr || id < 0) return next_clock_getres(id, result);
  if (result != nullptr) *result = {0, 1};
  return 0;
}

// C11's.
RNICSIM_EXPORT int timespec_get(timespec* result, int base) noexcept {
  if (simulated_slot() == nullptr || base != TIME_UTC) return next_timespec_get(result, base);
  ::clock_gettime(CLOCK_REALTIME, result);
  return base;
}

RNICSIM_EXPORT int gettimeofday(timeval* result, void* zone) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_gettimeofday(result, zone);
  const timespec now = look_at(*slot, CLOCK_REALTIME);
  *result = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

// An old form of gettimeofday.
RNICSIM_EXPORT int ftime(timeb* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_ftime(result);
  const timespec now = look_at(*slot, CLOCK_REALTIME);
  *result = {now.tv_sec, static_cast<unsigned short>(now.tv_nsec / 1'000'000), 0, 0};
  return 0;
}

RNICSIM_EXPORT time_t time(time_t* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_time(result);
  const time_t seconds = look_at(*slot, CLOCK_REALTIME).tv_sec;
  if (result != nullptr) *result = seconds;
  return seconds;
}

// CPU time: a simulated processor is never taken away, so it is the time since the start.
RNICSIM_EXPORT clock_t clock() {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_clock();
  return clock_t(read_clock(*slot) / (kSecond / CLOCKS_PER_SEC));
}

// The real processor's faults, switches and pages are not the simulated one's, which has none.
RNICSIM_EXPORT int getrusage(__rusage_who_t who, rusage* result) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_getrusage(who, result);
  if (who != RUSAGE_SELF && who != RUSAGE_THREAD && who != RUSAGE_CHILDREN) {
    errno = EINVAL;
    return -1;
  }
  *result = {};
  if (who != RUSAGE_CHILDREN) result->ru_utime = to_timeval(read_clock(*slot));
  return 0;
}

// As Linux answers: ticks since the boot, and the processor's since the start.
RNICSIM_EXPORT clock_t times(tms* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_times(result);
  const auto ticks_a_second = std::uint64_t(::sysconf(_SC_CLK_TCK));
  const auto ticks = clock_t(read_clock(*slot) / (kSecond / ticks_a_second));
  if (result != nullptr) *result = {ticks, 0, 0, 0};
  return ticks + clock_t(zero_of(CLOCK_BOOTTIME) * ticks_a_second);
}

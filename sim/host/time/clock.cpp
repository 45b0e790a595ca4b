// SPDX-License-Identifier: Apache-2.0
// The clocks of a simulated program. All calls read one clock of simulated time.

#include <errno.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <time.h>

#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/cpu_time.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(clock_gettime);
RNICSIM_NEXT(gettimeofday);
RNICSIM_NEXT(time);
RNICSIM_NEXT(clock_getres);
RNICSIM_NEXT(timespec_get);
static const rnicsim::clock::Next<int(timeb*)> next_ftime{"ftime"};

namespace rnicsim::clock {
namespace {

// Charges a clock read and returns the thread's clock, in ps.
std::uint64_t read_clock(abi::ThreadSlot& slot) {
  charge_clock_read(slot);
  return slot.now;
}

// Time of the clock `id`, which is not one of CPU time.
timespec look_at(abi::ThreadSlot& slot, clockid_t id) {
  timespec result = to_timespec(read_clock(slot));
  result.tv_sec += time_t(zero_of(id));
  return result;
}

// True: a clock of a file (clock_gettime(2), dynamic clocks). The real kernel answers for it.
bool is_of_device(clockid_t id) {
  constexpr int kKind = 7, kDevice = 3;
  return id < 0 && (id & kKind) == kDevice;
}
bool is_there(clockid_t id) {
  constexpr clockid_t kCycles = 10;  // formerly a clock of SGI
  return id <= CLOCK_TAI && id != kCycles;
}

int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int clock_gettime(clockid_t id, timespec* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || is_of_device(id)) return next_clock_gettime(id, result);
  if (!is_of_cpu_time(id)) {
    if (!is_there(id)) return fail(EINVAL);
    *result = look_at(*slot, id);
    return 0;
  }
  charge_clock_read(*slot);
  const auto used = cpu_time_on(*slot, id);
  if (!used) return fail(EINVAL);
  *result = to_timespec(*used);
  return 0;
}

RNICSIM_EXPORT int clock_getres(clockid_t id, timespec* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || is_of_device(id)) return next_clock_getres(id, result);
  if (is_of_cpu_time(id) ? !cpu_time_on(*slot, id) : !is_there(id)) return fail(EINVAL);
  if (result != nullptr) *result = {0, 1};
  return 0;
}

// Clock of C11.
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

// Old form of gettimeofday().
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

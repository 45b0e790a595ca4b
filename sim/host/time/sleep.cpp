// SPDX-License-Identifier: Apache-2.0
// Sleep and alarms in simulated time.

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/spin/timed_look.h"
#include "sim/host/time/cpu_time.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(nanosleep);
RNICSIM_NEXT(clock_nanosleep);
RNICSIM_NEXT(usleep);
RNICSIM_NEXT(sleep);
RNICSIM_NEXT(pause);
RNICSIM_NEXT(alarm);
RNICSIM_NEXT(ualarm);
RNICSIM_NEXT(sched_yield);
static const rnicsim::clock::Next<int(int, const itimerval*, itimerval*)> next_setitimer{"setitimer"};
static const rnicsim::clock::Next<int(int, itimerval*)> next_getitimer{"getitimer"};

namespace rnicsim::clock {
namespace {

// The simulated time at which a clock shows `time`; for a clock of CPU time, if the processor is used until then.
std::uint64_t moment_on(abi::ThreadSlot& slot, clockid_t id, const timespec& time) {
  const auto used = is_of_cpu_time(id) ? cpu_time_on(slot, id) : std::nullopt;
  if (!used) return moment(id, time);
  const std::uint64_t wanted = picoseconds(time);
  return after(slot.now, wanted - std::min(wanted, *used));
}

// Returns the time left, in ps, if a signal came first; else 0.
std::uint64_t sleep_until(abi::ThreadSlot& slot, std::uint64_t deadline) {
  charge(slot, abi::CpuCost::system_call);
  if (call_cancellably(slot, abi::Call::sleep, {deadline}) != EINTR) return 0;
  return deadline > slot.now ? deadline - slot.now : 0;
}

// Time left and interval, in ps, of the timer behind ITIMER_REAL and alarm().
struct Alarm {
  std::uint64_t left;
  std::uint64_t interval;
};
constexpr std::uint64_t kAlarmTimer = 0;

Alarm set_alarm(abi::ThreadSlot& slot, std::uint64_t value, std::uint64_t interval) {
  charge(slot, abi::CpuCost::system_call);
  call(slot, abi::Call::set_timer, {kAlarmTimer, value == 0 ? 0 : after(slot.now, value), interval});
  return {slot.value, slot.argument[3]};
}
Alarm alarm_now(abi::ThreadSlot& slot) {
  charge(slot, abi::CpuCost::system_call);
  call(slot, abi::Call::get_timer, {kAlarmTimer});
  return {slot.value, slot.argument[3]};
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int clock_nanosleep(clockid_t id, int flags, const timespec* request, timespec* left) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_clock_nanosleep(id, flags, request, left);
  if (!valid(*request) || id == CLOCK_THREAD_CPUTIME_ID || (is_of_cpu_time(id) && !cpu_time_on(*slot, id)))
    return EINVAL;
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const std::uint64_t deadline = absolute ? moment_on(*slot, id, *request) : after(slot->now, picoseconds(*request));
  const std::uint64_t remaining = sleep_until(*slot, deadline);
  if (remaining == 0) return 0;
  if (left != nullptr && !absolute) *left = to_timespec(remaining);
  return EINTR;
}

RNICSIM_EXPORT int nanosleep(const timespec* request, timespec* left) {
  if (simulated_slot() == nullptr) return next_nanosleep(request, left);
  const int error = ::clock_nanosleep(CLOCK_MONOTONIC, 0, request, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

RNICSIM_EXPORT int usleep(useconds_t microseconds) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_usleep(microseconds);
  if (sleep_until(*slot, slot->now + microseconds * kMicrosecond) == 0) return 0;
  errno = EINTR;
  return -1;
}

RNICSIM_EXPORT unsigned sleep(unsigned seconds) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sleep(seconds);
  return unsigned(sleep_until(*slot, slot->now + seconds * kSecond) / kSecond);
}

RNICSIM_EXPORT int pause() {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pause();
  sleep_until(*slot, abi::kForever);
  errno = EINTR;
  return -1;
}

RNICSIM_EXPORT int sched_yield() noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sched_yield();
  // Other threads may have stored the value that the thread waits for.
  begin_timed_look(*slot, abi::CpuCost::system_call);
  timed_look(*slot, __builtin_return_address(0));
  return 0;
}

RNICSIM_EXPORT unsigned alarm(unsigned seconds) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_alarm(seconds);
  const Alarm old = set_alarm(*slot, seconds * kSecond, 0);
  return unsigned((old.left + kSecond - 1) / kSecond);
}

RNICSIM_EXPORT useconds_t ualarm(useconds_t value, useconds_t interval) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_ualarm(value, interval);
  return useconds_t(set_alarm(*slot, value * kMicrosecond, interval * kMicrosecond).left / kMicrosecond);
}

RNICSIM_EXPORT int getitimer(__itimer_which_t which, itimerval* value) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || which != ITIMER_REAL) return next_getitimer(which, value);
  const Alarm now = alarm_now(*slot);
  *value = {to_timeval(now.interval), to_timeval(now.left)};
  return 0;
}

RNICSIM_EXPORT int setitimer(__itimer_which_t which, const itimerval* value, itimerval* old) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  // Timers of CPU time measure the real processor.
  if (slot != nullptr && which != ITIMER_REAL) note_real_call(SYS_setitimer);
  if (slot == nullptr || which != ITIMER_REAL || value == nullptr) return next_setitimer(which, value, old);
  const Alarm before = set_alarm(*slot, picoseconds(value->it_value), picoseconds(value->it_interval));
  if (old != nullptr) *old = {to_timeval(before.interval), to_timeval(before.left)};
  return 0;
}

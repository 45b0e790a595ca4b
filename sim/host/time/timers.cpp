// SPDX-License-Identifier: Apache-2.0
// Timers behind descriptors (timerfd) and POSIX timers, in simulated time. A timerfd is an eventfd to which the
// simulator adds the timer's ends: a read returns their number since the last read.

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/cpu_time.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/timer_calls.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(timer_create);
RNICSIM_NEXT(timer_settime);
RNICSIM_NEXT(timer_gettime);
RNICSIM_NEXT(timer_getoverrun);
RNICSIM_NEXT(timer_delete);
RNICSIM_NEXT(timerfd_create);
RNICSIM_NEXT(timerfd_settime);
RNICSIM_NEXT(timerfd_gettime);

namespace rnicsim::clock {
namespace {

enum class Tells : std::uint64_t { descriptor, process, thread, nobody };

int fail(int error) {
  errno = error;
  return -1;
}

itimerspec as_found(const abi::ThreadSlot& slot) { return {to_timespec(slot.argument[3]), to_timespec(slot.value)}; }

int set(abi::ThreadSlot& slot, std::uint32_t number, clockid_t id, bool absolute, const itimerspec& value,
        itimerspec* old) {
  if (!valid(value.it_value) || !valid(value.it_interval)) return fail(EINVAL);
  charge(slot, abi::CpuCost::system_call);
  const bool is_off = value.it_value.tv_sec == 0 && value.it_value.tv_nsec == 0;
  const std::uint64_t end = absolute ? moment(id, value.it_value) : after(slot.now, picoseconds(value.it_value));
  const int error = call(slot, abi::Call::set_timer,
                         {number, is_off ? 0 : std::max<std::uint64_t>(end, 1), picoseconds(value.it_interval)});
  if (error != 0) return fail(error);
  if (old != nullptr) *old = as_found(slot);
  return 0;
}

int get(abi::ThreadSlot& slot, std::uint32_t number, itimerspec* value) {
  charge(slot, abi::CpuCost::system_call);
  if (const int error = call(slot, abi::Call::get_timer, {number}); error != 0) return fail(error);
  *value = as_found(slot);
  return 0;
}

// The timer_t of a simulated POSIX timer holds the simulator's number and the clock, above the real kernel's small
// numbers.
constexpr std::uintptr_t kOurs = 1u << 30;
constexpr unsigned kClockBits = 4;
timer_t handle(std::uint32_t number, clockid_t id) {
  return reinterpret_cast<timer_t>(kOurs | std::uintptr_t(number) << kClockBits | std::uintptr_t(id));
}
bool is_ours(timer_t timer) {
  return simulated_slot() != nullptr && (reinterpret_cast<std::uintptr_t>(timer) >> 30) == 1;
}
std::uint32_t number_of(timer_t timer) {
  return std::uint32_t((reinterpret_cast<std::uintptr_t>(timer) & (kOurs - 1)) >> kClockBits);
}
clockid_t clock_of(timer_t timer) {
  return clockid_t(reinterpret_cast<std::uintptr_t>(timer) & ((1u << kClockBits) - 1));
}

}  // namespace

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int timerfd_create(clockid_t id, int flags) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_timerfd_create(id, flags);
  static_assert(int(TFD_CLOEXEC) == int(EFD_CLOEXEC) && int(TFD_NONBLOCK) == int(EFD_NONBLOCK));
  if ((flags & ~(TFD_CLOEXEC | TFD_NONBLOCK)) != 0 || is_of_cpu_time(id)) return fail(EINVAL);
  charge(*slot, abi::CpuCost::system_call);
  const int fd = ::eventfd(0, flags);
  if (fd < 0) return fd;
  const int error = send_descriptors({&fd, 1})
                        ? call(*slot, abi::Call::new_timer, {std::uint64_t(Tells::descriptor), 0, std::uint64_t(id)})
                        : EMFILE;
  if (error == 0 && remember(fd, {.timer = std::uint32_t(slot->value), .timer_clock = id})) return fd;
  ::close(fd);
  return fail(error != 0 && error != EAGAIN ? error : EMFILE);
}
RNICSIM_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  const auto descriptor = known(fd);
  if (slot == nullptr || !descriptor || descriptor->timer == 0) return next_timerfd_settime(fd, flags, value, old);
  if ((flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) != 0) return fail(EINVAL);
  return set(*slot, descriptor->timer, descriptor->timer_clock, (flags & TFD_TIMER_ABSTIME) != 0, *value, old);
}
RNICSIM_EXPORT int timerfd_gettime(int fd, itimerspec* value) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  const auto descriptor = known(fd);
  if (slot == nullptr || !descriptor || descriptor->timer == 0) return next_timerfd_gettime(fd, value);
  return get(*slot, descriptor->timer, value);
}

// Finds the receiver of a timer's signal. False, with errno: this kind of notification is not possible.
static bool find_receiver(const sigevent& event, abi::SignalRecord& signal, Tells& tells, pid_t& thread) {
  signal.number = std::uint32_t(event.sigev_signo);
  signal.value = std::uint64_t(reinterpret_cast<std::uintptr_t>(event.sigev_value.sival_ptr));
  switch (event.sigev_notify) {
    case SIGEV_SIGNAL: return true;
    case SIGEV_NONE: tells = Tells::nobody; return true;
    case SIGEV_THREAD_ID:
      tells = Tells::thread;
      thread = event._sigev_un._tid;
      if (real_tid_of(thread)) return true;
      fail(EINVAL);
      return false;
    case SIGEV_THREAD:
      tells = Tells::thread;
      thread = hearing_thread();
      signal.number = kEndSignal;
      signal.value = thread != 0 ? keep_call(event) : 0;
      if (signal.value != 0) return true;
      fail(EAGAIN);
      return false;
    default: fail(EINVAL); return false;
  }
}

// Timers of CPU time are the real kernel's.
RNICSIM_EXPORT int timer_create(clockid_t id, sigevent* event, timer_t* timer) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot != nullptr && is_of_cpu_time(id)) {
    note_real_call(SYS_timer_create);
    const auto real = real_cpu_clock(id);
    return real ? next_timer_create(*real, event, timer) : fail(EINVAL);
  }
  if (slot == nullptr) return next_timer_create(id, event, timer);
  if (id < 0 || id > CLOCK_TAI) return fail(EINVAL);
  abi::SignalRecord signal{.number = SIGALRM, .code = SI_TIMER};
  auto tells = Tells::process;
  pid_t thread = 0;
  if (event != nullptr && !find_receiver(*event, signal, tells, thread)) return -1;
  charge(*slot, abi::CpuCost::system_call);
  memcpy(slot->input, &signal, sizeof signal);
  slot->input_bytes = sizeof signal;
  const bool calls = event != nullptr && event->sigev_notify == SIGEV_THREAD;
  if (const int error = call(*slot, abi::Call::new_timer, {std::uint64_t(tells), std::uint64_t(thread)}); error != 0) {
    if (calls) forget_call(signal.value);
    return fail(error);
  }
  if (calls) note_timer(signal.value, std::uint32_t(slot->value));
  *timer = handle(std::uint32_t(slot->value), id);
  return 0;
}
RNICSIM_EXPORT int timer_settime(timer_t timer, int flags, const itimerspec* value, itimerspec* old) noexcept {
  if (!is_ours(timer)) return next_timer_settime(timer, flags, value, old);
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  return set(*simulated_slot(), number_of(timer), clock_of(timer), absolute, *value, old);
}
RNICSIM_EXPORT int timer_gettime(timer_t timer, itimerspec* value) noexcept {
  if (!is_ours(timer)) return next_timer_gettime(timer, value);
  return get(*simulated_slot(), number_of(timer), value);
}
// Each end is reported at its own time: there are no overruns.
RNICSIM_EXPORT int timer_getoverrun(timer_t timer) noexcept {
  return is_ours(timer) ? 0 : next_timer_getoverrun(timer);
}
RNICSIM_EXPORT int timer_delete(timer_t timer) noexcept {
  if (!is_ours(timer)) return next_timer_delete(timer);
  forget_call_of(number_of(timer));
  const int error = call(*simulated_slot(), abi::Call::delete_timer, {number_of(timer)});
  return error == 0 ? 0 : fail(error);
}

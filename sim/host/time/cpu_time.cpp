// SPDX-License-Identifier: Apache-2.0
#include "sim/host/time/cpu_time.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/kernel/processes/other_processes.h"
#include "sim/host/kernel/processes/thread_numbers.h"
#include "sim/host/kernel/processes/threads.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(clock);
RNICSIM_NEXT(times);
RNICSIM_NEXT(getrusage);
RNICSIM_NEXT(clock_getcpuclockid);
RNICSIM_NEXT(pthread_getcpuclockid);

namespace rnicsim::clock {
namespace {

// Clock numbers of processes and threads, as the C library and the kernel form them; number 0 is the caller.
constexpr int kThreadClock = 4, kScheduledTime = 2, kNumberShift = 3;
clockid_t clock_of(std::uint32_t number, int of_thread) {
  return clockid_t(~number << kNumberShift) | kScheduledTime | of_thread;
}

std::uint32_t number_of(clockid_t id) { return std::uint32_t(~(id >> kNumberShift)); }

std::uint64_t cpu_time_of_thread(const abi::ThreadSlot& slot, std::uint64_t now) {
  const std::uint64_t until = slot.on_cpu != 0 ? std::max(slot.now, now) : slot.now;
  const std::uint64_t lived = until - std::min(until, slot.began);
  return lived - std::min(lived, slot.waited);
}

std::uint64_t cpu_time_of_process(std::uint64_t now) {
  std::uint64_t sum = session()->header().ended_threads_time;
  for (std::uint32_t i = 0; i < abi::kMaxThreads; ++i) {
    const abi::ThreadSlot& slot = session()->slot(i);
    if (slot.virtual_tid == 0) break;  // slots are used in order: no later one has ever been used
    sum += cpu_time_of_thread(slot, now);
  }
  return sum;
}

std::optional<std::uint64_t> cpu_time_of_thread_numbered(std::uint32_t number, std::uint64_t now) {
  for (std::uint32_t i = 0; i < abi::kMaxThreads; ++i) {
    const abi::ThreadSlot& slot = session()->slot(i);
    if (slot.virtual_tid == 0) break;
    if (slot.virtual_tid == number && slot.began != abi::ThreadSlot::kNoThread) return cpu_time_of_thread(slot, now);
  }
  return std::nullopt;
}

std::uint64_t read_cpu_time_of_process(abi::ThreadSlot& slot) {
  charge_clock_read(slot);
  return cpu_time_of_process(slot.now);
}

}  // namespace

std::optional<std::uint64_t> cpu_time_on(abi::ThreadSlot& caller, clockid_t id) {
  if (id == CLOCK_PROCESS_CPUTIME_ID) return cpu_time_of_process(caller.now);
  if (id == CLOCK_THREAD_CPUTIME_ID) return cpu_time_of_thread(caller, caller.now);
  const std::uint32_t number = number_of(id);
  if ((id & kThreadClock) != 0)
    return number == 0 ? cpu_time_of_thread(caller, caller.now) : cpu_time_of_thread_numbered(number, caller.now);
  if (number == 0 || number == session()->header().virtual_pid) return cpu_time_of_process(caller.now);
  return cpu_time_of_another(pid_t(number));
}

std::optional<clockid_t> real_cpu_clock(clockid_t id) {
  if (id >= 0 || number_of(id) == 0) return id;
  const bool of_thread = (id & kThreadClock) != 0;
  const auto number = pid_t(number_of(id));
  const auto real = of_thread ? real_tid_of(number) : find_process(number);
  return real ? std::optional(clock_of(std::uint32_t(*real), of_thread ? kThreadClock : 0)) : std::nullopt;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT clock_t clock() {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_clock();
  return clock_t(read_cpu_time_of_process(*slot) / (kSecond / CLOCKS_PER_SEC));
}

RNICSIM_EXPORT int clock_getcpuclockid(pid_t pid, clockid_t* id) noexcept {
  if (!simulated()) return next_clock_getcpuclockid(pid, id);
  if (pid < 0 || (pid != 0 && !find_process(pid))) return ESRCH;
  *id = clock_of(std::uint32_t(pid), 0);
  return 0;
}
RNICSIM_EXPORT int pthread_getcpuclockid(pthread_t thread, clockid_t* id) noexcept {
  const abi::ThreadSlot* slot = simulated() ? slot_of(thread) : nullptr;
  if (slot == nullptr) return next_pthread_getcpuclockid(thread, id);
  *id = clock_of(slot->virtual_tid, kThreadClock);
  return 0;
}

// Faults, switches and pages stay 0: those of the real processor are not the simulated one's.
RNICSIM_EXPORT int getrusage(__rusage_who_t who, rusage* result) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_getrusage(who, result);
  if (who != RUSAGE_SELF && who != RUSAGE_THREAD && who != RUSAGE_CHILDREN) {
    errno = EINVAL;
    return -1;
  }
  const std::uint64_t of_process = read_cpu_time_of_process(*slot);
  *result = {};
  result->ru_utime = to_timeval(who == RUSAGE_SELF     ? of_process
                                : who == RUSAGE_THREAD ? cpu_time_of_thread(*slot, slot->now)
                                                       : session()->header().children_time);
  return 0;
}

// As on Linux: returns the ticks since the boot, and stores CPU times in ticks.
RNICSIM_EXPORT clock_t times(tms* result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_times(result);
  const auto ticks_a_second = std::uint64_t(::sysconf(_SC_CLK_TCK));
  const auto ticks = [&](std::uint64_t ps) { return clock_t(ps / (kSecond / ticks_a_second)); };
  const std::uint64_t of_process = read_cpu_time_of_process(*slot);
  if (result != nullptr) *result = {ticks(of_process), 0, ticks(session()->header().children_time), 0};
  return ticks(slot->now) + clock_t(zero_of(CLOCK_BOOTTIME) * ticks_a_second);
}

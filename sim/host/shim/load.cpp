// SPDX-License-Identifier: Apache-2.0
// Load and free memory of a simulated host: nothing else runs there.

#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "sim/host/kernel/files/proc_files.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

using namespace rnicsim::clock;

RNICSIM_NEXT(sysinfo);
RNICSIM_NEXT(getloadavg);
RNICSIM_NEXT(get_avphys_pages);
RNICSIM_NEXT(sysconf);

RNICSIM_EXPORT int sysinfo(struct sysinfo* result) noexcept {
  const int error = next_sysinfo(result);
  if (error != 0 || simulated_slot() == nullptr) return error;
  const struct sysinfo real = *result;
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  *result = {};
  result->uptime = since_boot.tv_sec;
  result->totalram = real.totalram;
  result->freeram = decltype(real.freeram)(free_memory(real.totalram));
  result->totalswap = result->freeswap = real.totalswap;
  result->procs = 1;
  result->mem_unit = real.mem_unit;
  return 0;
}

// The C library's own function asks the real kernel.
RNICSIM_EXPORT long get_avphys_pages() noexcept {
  return simulated_slot() == nullptr ? next_get_avphys_pages() : long(free_memory(std::uint64_t(::get_phys_pages())));
}
RNICSIM_EXPORT long sysconf(int name) noexcept {
  return name == _SC_AVPHYS_PAGES ? ::get_avphys_pages() : next_sysconf(name);
}
// The C library's own function opens the real /proc/loadavg.
RNICSIM_EXPORT int getloadavg(double loads[], int count) noexcept {
  if (simulated_slot() == nullptr) return next_getloadavg(loads, count);
  const int known = std::clamp(count, 0, 3);
  std::fill_n(loads, known, 0.0);
  return known;
}

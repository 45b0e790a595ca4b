// SPDX-License-Identifier: Apache-2.0
// A timer of an attached process: ITIMER_REAL, a POSIX timer, or a timerfd. A timerfd is shared by all processes that
// have the descriptor.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

#include "model/abi/attach.h"
#include "model/base/units.h"
#include "sim/attached/time/event_counter.h"

namespace rnicsim::sim {

struct Timer {
  EventCounter counter;      // timerfd: counts expiries
  abi::SignalRecord signal;  // otherwise: the signal; number 0: none
  std::uint32_t thread = 0;  // virtual number of the thread that gets the signal; 0: the process
  clockid_t clock = 0;       // clock that the program named
  std::optional<Duration> deadline;
  Duration interval;
  std::uint64_t setting = 0;        // counts calls of settime
  std::uint32_t fired_in_vain = 0;  // expiries since progress `seen_progress`
  std::uint64_t seen_progress = 0;
};

inline constexpr std::uint32_t kAlarmTimer = 0;

}  // namespace rnicsim::sim

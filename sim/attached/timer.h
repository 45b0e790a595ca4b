// A timer of an attached process: ITIMER_REAL's, a POSIX one, or one behind a descriptor (timerfd), which all processes
// share that have it.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

#include "model/abi/attach.h"
#include "model/base/units.h"
#include "sim/attached/event_counter.h"

namespace rnicsim::sim {

struct Timer {
  EventCounter counter;      // of its ends; or
  abi::SignalRecord signal;  // number 0: it tells nobody
  std::uint32_t thread = 0;  // virtual, who gets the signal; 0: the process
  clockid_t clock = 0;       // as its maker counts
  std::optional<Duration> deadline;
  Duration interval;
  std::uint64_t setting = 0;        // grows each time it is set
  std::uint32_t fired_in_vain = 0;  // since the world last made progress, by `seen_progress`
  std::uint64_t seen_progress = 0;
};

inline constexpr std::uint32_t kAlarmTimer = 0;

}  // namespace rnicsim::sim

// A timer of an attached process: ITIMER_REAL's, one behind a descriptor (timerfd), or a POSIX one.
#pragma once

#include <cstdint>
#include <optional>

#include "model/abi/attach.h"
#include "model/base/units.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

struct Timer {
  Descriptor counter;        // of its ends, an event descriptor; or
  abi::SignalRecord signal;  // number 0: it tells nobody
  std::uint32_t thread = 0;  // virtual, who gets the signal; 0: the process
  std::optional<Duration> deadline;
  Duration interval;
  std::uint64_t setting = 0;        // grows each time it is set
  std::uint32_t fired_in_vain = 0;  // since the world last made progress, by `seen_progress`
  std::uint64_t seen_progress = 0;
};

inline constexpr std::uint32_t kAlarmTimer = 0;

}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Counters of the miss slots.
#pragma once

#include <cstdint>

#include "model/base/stats.h"

namespace rnicsim::nic {

// Valid up to the last time that a slot was taken or given back.
struct MissSlotsCounters {
  std::uint32_t slots = 1;
  Counter busy_ps = 0;
  Counter wait_ps = 0;

  void describe(CounterVisitor& visit) const {
    visit.busy("slots_busy", busy_ps, slots, "time that miss slots were in use, sum of all slots");
    visit.waited("slots_wait", wait_ps, "time that misses waited for a slot, sum of all misses");
  }
};

}  // namespace rnicsim::nic

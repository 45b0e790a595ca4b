// SPDX-License-Identifier: Apache-2.0
// Counters of the event writer.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct EventCounters {
  Counter events = 0;
  Counter eq_overruns = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("events", events, "events", "event queue entries written");
    visit.counter("eq_overruns", eq_overruns, "events", "events lost: the event queue does not exist");
  }
};

}  // namespace rnicsim::nic

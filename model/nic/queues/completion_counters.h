// SPDX-License-Identifier: Apache-2.0
// Counters of the completion unit.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct CompletionCounters {
  Counter cqes = 0;
  Counter error_cqes = 0;
  Counter inline_cqes = 0;
  Counter moderated_events = 0;
  Counter cq_overruns = 0;
  Counter orphans = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("cqes", cqes, "entries", "completion queue entries written");
    visit.counter("error_cqes", error_cqes, "entries", "entries with an error status");
    visit.counter("inline_cqes", inline_cqes, "entries", "entries that contain the payload of a receive");
    visit.counter("moderated_events", moderated_events, "events", "completion events that waited for more entries");
    visit.counter("cq_overruns", cq_overruns, "queues", "completion queues in error after an overrun");
    visit.counter("orphans", orphans, "entries", "entries not written: the XRC shared receive queue was destroyed");
  }
};

}  // namespace rnicsim::nic

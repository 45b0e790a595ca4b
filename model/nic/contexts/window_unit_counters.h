// SPDX-License-Identifier: Apache-2.0
// Counters of the window unit.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct WindowCounters {
  Counter bound = 0;
  Counter closed = 0;
  Counter registered = 0;
  Counter freed = 0;
  Counter refused = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("bound", bound, "windows", "memory windows bound to a region");
    visit.counter("closed", closed, "windows", "memory windows unbound");
    visit.counter("registered", registered, "regions", "regions that a fast registration gave pages");
    visit.counter("freed", freed, "regions", "regions of fast registration whose key was invalidated");
    visit.counter("refused", refused, "requests", "binds, registrations and invalidations refused");
  }
};

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// Counters of the faults that a cable's fault rules caused.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::fabric {

struct FaultCounters {
  Counter dropped = 0;
  Counter corrupted = 0;
  Counter duplicated = 0;
  Counter delayed = 0;
  Counter reordered = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("dropped", dropped, "frames", "frames of this host that the cable lost, by a fault rule");
    visit.counter("corrupted", corrupted, "frames", "frames of this host in which the cable flipped a bit");
    visit.counter("duplicated", duplicated, "frames", "frames of this host that the cable delivered twice");
    visit.counter("delayed", delayed, "frames", "frames of this host that the cable delayed");
    visit.counter("reordered", reordered, "frames", "frames of this host that the cable held back behind later ones");
  }
};

}  // namespace rnicsim::fabric

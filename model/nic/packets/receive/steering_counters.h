// SPDX-License-Identifier: Apache-2.0
// Counters of the steering.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct SteeringCounters {
  Counter roce = 0;
  Counter not_roce = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("roce", roce, "frames", "frames for the RoCE transport");
    visit.counter("not_roce", not_roce, "frames", "frames of another protocol, for the flows of raw packets");
  }
};

}  // namespace rnicsim::nic

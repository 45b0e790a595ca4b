// SPDX-License-Identifier: Apache-2.0
// Counters of the doorbell unit.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct DoorbellCounters {
  Counter send_doorbells = 0;
  Counter blueflame_doorbells = 0;
  Counter cq_arms = 0;
  Counter eq_doorbells = 0;
  Counter doorbell_wrong_page = 0;
  Counter doorbell_malformed = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("send_doorbells", send_doorbells, "writes", "send doorbells without a WQE");
    visit.counter("blueflame_doorbells", blueflame_doorbells, "writes", "send doorbells that carried the WQE");
    visit.counter("cq_arms", cq_arms, "writes", "completion queues armed");
    visit.counter("eq_doorbells", eq_doorbells, "writes", "event queues consumed and armed");
    visit.counter("doorbell_wrong_page", doorbell_wrong_page, "writes",
                  "doorbells dropped: the QP or CQ does not belong to the UAR page");
    visit.counter("doorbell_malformed", doorbell_malformed, "writes",
                  "doorbells dropped: no doorbell at this offset or of this size");
  }
};

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// Counters of the notification point.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct NotificationCounters {
  Counter np_cnp_sent = 0;
  Counter np_ecn_marked_roce_packets = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("np_cnp_sent", np_cnp_sent, "packets", "CNPs sent");
    visit.counter("np_ecn_marked_roce_packets", np_ecn_marked_roce_packets, "packets",
                  "packets received with a switch's mark (CE)");
  }
};

}  // namespace rnicsim::nic

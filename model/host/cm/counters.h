// SPDX-License-Identifier: Apache-2.0
// Counters of a host's connection manager.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::host {

struct CmCounters {
  Counter sent = 0;
  Counter repeated = 0;
  Counter received = 0;
  Counter malformed = 0;
  Counter duplicates = 0;
  Counter unexpected = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("sent", sent, "messages", "messages sent by the communication manager, with retransmissions");
    visit.counter("repeated", repeated, "messages", "messages sent again because no answer came");
    visit.counter("received", received, "messages", "messages received from peers' communication managers");
    visit.counter("malformed", malformed, "datagrams", "datagrams received on QP1 that are not such messages");
    visit.counter("duplicates", duplicates, "messages", "duplicate messages received");
    visit.counter("unexpected", unexpected, "messages",
                  "messages received without a connection, or in a wrong state of the connection");
  }
};

}  // namespace rnicsim::host

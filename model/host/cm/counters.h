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
    visit.counter("sent", sent, "messages", "of the communication manager, repeated ones too");
    visit.counter("repeated", repeated, "messages", "sent again because nobody answered");
    visit.counter("received", received, "messages", "of peers' communication managers");
    visit.counter("malformed", malformed, "datagrams", "received on QP1 that are no such messages");
    visit.counter("duplicates", duplicates, "messages", "received that had been received before");
    visit.counter("unexpected", unexpected, "messages", "received for no connection, or not in its state");
  }
};

}  // namespace rnicsim::host

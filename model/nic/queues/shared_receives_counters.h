// SPDX-License-Identifier: Apache-2.0
// Counters of the shared receive queues.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct SharedReceiveCounters {
  Counter record_reads = 0;
  Counter entry_reads = 0;
  Counter entries_read = 0;
  Counter taken = 0;
  Counter given_back = 0;
  Counter empty = 0;
  Counter limits = 0;
  Counter errors = 0;
  Counter looks = 0;
  Counter refused = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("record_reads", record_reads, "requests", "reads of doorbell records");
    visit.counter("entry_reads", entry_reads, "requests", "reads of entries, some at a time");
    visit.counter("entries_read", entries_read, "entries", "entries read and confirmed by the chain");
    visit.counter("taken", taken, "entries", "entries handed to queue pairs");
    visit.counter("given_back", given_back, "entries", "entries returned: their queue pair was reset or failed");
    visit.counter("empty", empty, "requests", "requests of queue pairs without a posted entry");
    visit.counter("limits", limits, "events", "queues that fell below their limit");
    visit.counter("errors", errors, "queues", "queues that cannot be read or have invalid entries");
    visit.counter("looks", looks, "requests", "requests of XRC queue pairs for a queue without an entry");
    visit.counter("refused", refused, "requests", "requests of XRC queue pairs for a queue of another domain");
  }
};

}  // namespace rnicsim::nic

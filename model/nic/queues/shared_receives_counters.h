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
    visit.counter("entries_read", entries_read, "entries", "entries of them that the chain confirmed");
    visit.counter("taken", taken, "entries", "entries handed to queue pairs");
    visit.counter("given_back", given_back, "entries",
                  "of those, that came back: their queue pair was reset, or failed");
    visit.counter("empty", empty, "requests", "of queue pairs for an entry, when none was posted");
    visit.counter("limits", limits, "events", "queues that fell below their limit");
    visit.counter("errors", errors, "queues", "queues that can't be read, or whose entries make no sense");
    visit.counter("looks", looks, "requests", "of XRC queue pairs that wanted to know a queue, and no entry");
    visit.counter("refused", refused, "requests", "of XRC queue pairs, for a queue that is none of their domain");
  }
};

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the atomic unit.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct AtomicParams {
  std::uint32_t lock_slots = 4096;
  Duration service = 60_ns;
  Duration qp_interval = 345_ns;

  void describe(ParamVisitor& visit) {
    visit.param("lock_slots", lock_slots,
                "locks, by the physical address modulo their number; docs/timing.md: addr[11:0]", {8, 1 << 20});
    visit.param("service", service, "modify, beyond the read, while the lock is held; docs/timing.md", {0, 1e9});
    visit.param("qp_interval", qp_interval, "least time between two atomics of a QP; docs/timing.md: 2.88 M/s",
                {0, 1e9});
  }
};

struct AtomicCounters {
  Counter operations = 0;
  Counter conflicts = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("operations", operations, "operations", "atomics executed");
    visit.counter("conflicts", conflicts, "operations", "atomics that waited for a lock slot in use");
  }
};

}  // namespace rnicsim::nic

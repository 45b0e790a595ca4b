// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the context caches.
#pragma once

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/contexts/cache_params.h"

namespace rnicsim::nic {

struct ContextParams {
  CacheParams qpc{.l0_entries = 256, .l1_entries = 2048, .fill_lines = 4};
  CacheParams cqc{.l0_entries = 256, .l1_entries = 512};
  CacheParams srqc{.l0_entries = 64, .l1_entries = 256};
  CacheParams mpt{.l0_entries = 64, .l1_entries = 2048, .miss_slots = 2};
  CacheParams mtt{.l0_entries = 128, .l1_entries = 4096, .miss_slots = 2};

  void describe(ParamVisitor& visit) {
    visit.group("qpc", qpc);
    visit.group("cqc", cqc);
    visit.group("srqc", srqc);
    visit.group("mpt", mpt);
    visit.group("mtt", mtt);
  }
};

struct ContextCounters {
  Counter fills = 0;
  Counter write_backs = 0;
  CacheCounters qpc;
  CacheCounters cqc;
  CacheCounters srqc;
  CacheCounters mpt;
  CacheCounters mtt;

  void describe(CounterVisitor& visit) const {
    visit.counter("fills", fills, "contexts", "contexts read from ICM");
    visit.counter("write_backs", write_backs, "contexts", "contexts written to ICM");
    visit.group("qpc", qpc);
    visit.group("cqc", cqc);
    visit.group("srqc", srqc);
    visit.group("mpt", mpt);
    visit.group("mtt", mtt);
  }
};

}  // namespace rnicsim::nic

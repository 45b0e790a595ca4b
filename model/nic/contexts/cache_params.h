// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the cache.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/contexts/miss_slots_counters.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct CacheParams {
  std::uint32_t l0_entries = 0;
  std::uint32_t l1_entries = 0;
  std::uint32_t ways = 8;
  std::uint32_t banks = 4;
  Duration l1_latency = 45_ns;
  Duration bank_cycle = 2_ns;
  std::uint32_t miss_slots = 4;
  std::uint32_t fill_lines = 1;
  bool hit_under_miss = true;
  std::string replacement = "lru";

  void describe(ParamVisitor& visit);
};

struct CacheCounters {
  Counter lookups = 0;
  Counter l0_hits = 0;
  Counter l1_hits = 0;
  Counter misses = 0;
  Counter evictions = 0;
  Counter slot_waits = 0;
  MissSlotsCounters slots;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic

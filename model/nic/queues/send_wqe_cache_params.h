// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the cache of send WQEs.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/contexts/miss_slots_counters.h"

namespace rnicsim::nic {

struct SendWqeCacheParams {
  std::uint32_t entries = 512;
  std::uint32_t ways = 4;
  std::uint32_t miss_slots = 4;
  std::uint32_t ahead = 20;
  std::string replacement = "lru";

  void describe(ParamVisitor& visit);
};

struct SendWqeCacheCounters {
  Counter lookups = 0;
  Counter hits = 0;
  Counter misses = 0;
  Counter slot_waits = 0;
  MissSlotsCounters slots;

  void describe(CounterVisitor& visit) const {
    visit.counter("lookups", lookups, "WQEs", "look-ups of WQEs, before sending and when the answer arrives");
    visit.counter("hits", hits, "WQEs", "look-ups that found the WQE");
    visit.counter("misses", misses, "WQEs", "look-ups that read the WQE from the ring again");
    visit.counter("slot_waits", slot_waits, "WQEs",
                  "look-ups that waited for a miss slot of their path, or behind a waiting look-up");
    slots.describe(visit);
  }
};

}  // namespace rnicsim::nic

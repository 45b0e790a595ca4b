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
    visit.counter("lookups", lookups, "WQEs", "looked up, before they were sent and when their answer was there");
    visit.counter("hits", hits, "WQEs", "of those, still here");
    visit.counter("misses", misses, "WQEs", "of those, read from the ring again");
    visit.counter("slot_waits", slot_waits, "WQEs", "that waited for their path's miss slots, or behind one that did");
    slots.describe(visit);
  }
};

}  // namespace rnicsim::nic

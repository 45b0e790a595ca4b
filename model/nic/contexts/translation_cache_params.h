// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the address translation cache.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct TranslationCacheParams {
  std::uint32_t entries = 4096;
  std::uint32_t ways = 8;
  std::string replacement = "lru";
  Duration lookup = 5_ns;
  std::uint32_t page_requests = 64;

  void describe(ParamVisitor& visit);
};

struct TranslationCacheCounters {
  Counter lookups = 0;
  Counter hits = 0;
  Counter evictions = 0;
  Counter translations = 0;
  Counter page_requests = 0;
  Counter page_requests_failed = 0;
  Counter page_request_waits = 0;
  Counter invalidations = 0;
  Counter invalidation_waits = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the translation unit.
#pragma once

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct TranslationParams {
  Duration flush = 500_ns;
  Duration flush_page = 4_ns;

  void describe(ParamVisitor& visit) {
    visit.param("flush", flush, "time without look-ups after a key is created or destroyed; docs/timing.md", {0, 1e9});
    visit.param("flush_page", flush_page, "additional time for each page of the key's region", {0, 1e9});
  }
};

struct TranslationCounters {
  Counter lookups = 0;
  Counter refused = 0;
  Counter flushes = 0;
  Counter flush_busy_ps = 0;
  Counter held_up = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("lookups", lookups, "regions", "ranges translated");
    visit.counter("refused", refused, "regions", "ranges refused: bad key, range, protection domain or access");
    visit.counter("flushes", flushes, "regions", "keys created or destroyed");
    visit.busy("flush_busy", flush_busy_ps, 1, "time that the tables were flushed because of such keys");
    visit.counter("held_up", held_up, "regions", "ranges that waited for a flush");
  }
};

}  // namespace rnicsim::nic

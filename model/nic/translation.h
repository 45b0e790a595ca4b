// Translation and protection: what a key allows, and where its memory lies on the bus.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "model/base/stats.h"
#include "model/nic/context_cache.h"
#include "model/nic/qp_engine.h"

namespace rnicsim::nic {

struct TranslationCounters {
  Counter lookups = 0;
  Counter refused = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("lookups", lookups, "regions", "ranges translated");
    visit.counter("refused", refused, "regions", "ranges refused: bad key, range, protection domain or access");
  }
};

struct Translated {
  AccessResult result = AccessResult::ok;
  Pasid pasid = 0;
  std::uint64_t address = 0;
};

struct AccessRequest {
  std::uint32_t pd;
  std::uint32_t access;
};

class Translation {
 public:
  explicit Translation(ContextCache& contexts) : contexts_(contexts) {}

  // Calls back at once when the region is resident; a range of no bytes is always good.
  void translate(const AccessRequest& request, const Region& region, std::function<void(const Translated&)> done);

  // The answer when it can be had at once; nullopt: translate() must be asked.
  std::optional<Translated> translate_now(const AccessRequest& request, const Region& region);

  // Takes a memory window's key out of use, for the queue pair it is bound to. Memory regions are not windows and this
  // device has none yet: every key is refused.
  AccessResult invalidate(std::uint32_t key);

  const TranslationCounters& counters() const { return counters_; }

 private:
  ContextCache& contexts_;
  TranslationCounters counters_;
};

// The checks alone.
Translated check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region);

}  // namespace rnicsim::nic

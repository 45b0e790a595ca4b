// SPDX-License-Identifier: Apache-2.0
// Translation and protection: the access that a key grants (MPT), and the bus addresses of its memory (MTT). A window's
// key is checked against the window's entry; the memory is that of the region to which the window is bound. When an
// entry is created or destroyed, the tables are flushed, and later lookups wait for the flush.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "model/base/event_queue.h"
#include "model/base/params.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/contexts/translation_cache.h"
#include "model/nic/contexts/translation_params.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// A range of bus addresses, and its offset in the region.
struct BusRange {
  std::uint64_t address;
  std::uint32_t length;
  std::uint64_t offset;
};

struct Translated {
  AccessResult result = AccessResult::ok;
  bool relaxed = false;                                  // the region's TLPs may pass writes
  Pasid pasid = 0;                                       // or DeviceMemory::kPlace
  Duration wait{};                                       // time from now until the translation is available
  boost::container::small_vector<BusRange, 1> ranges{};  // in order; empty for an empty range and for the null region

  Dma::Place place(std::size_t range) const { return {pasid, ranges[range].address, ranges[range].offset}; }
  Dma::Place only_place() const { return ranges.empty() ? Dma::Place{} : place(0); }
};

struct AccessRequest {
  std::uint32_t pd;
  std::uint32_t access;
  Qpn qpn{};            // the QP that asks
  bool remote = false;  // the key is a peer's rkey
};

class Translation : public sc_core::sc_module {
 public:
  Translation(sc_core::sc_module_name name, const TranslationParams& params, ContextCache& contexts,
              TranslationCache& on_demand);

  // Calls back at once if everything is available, else later. A range of no bytes is always ok.
  using Done = std::function<void(const Translated&)>;
  [[gnu::noinline]] void translate(const AccessRequest& request, const Region& region, Done done);
  // For use in the callback of translate(): the pages of a region on demand, which may be withdrawn unless they are
  // held; nullptr: pages that stay.
  using Hold = std::shared_ptr<TranslationCache::Hold>;
  Hold take_hold() { return std::move(told_hold_); }
  // Checks protection; also `absent` for a range on demand with a page that is not present.
  [[gnu::noinline]] void check(const AccessRequest& request, const Region& region,
                               std::function<void(AccessResult)> done);
  // Checks only the presence of a range on demand. `waits`: calls back when the range is present, or cannot be; else
  // with ok or absent. Any other range counts as present, also if its access would be refused.
  [[gnu::noinline]] void look(const AccessRequest& request, const Region& region, bool waits,
                              std::function<void(AccessResult)> done);

  // --- Answers that need no callback.
  // Translates if no context must be filled. False: call translate().
  bool translate_now(const AccessRequest& request, const Region& region, Translated& translated);
  // Checks if the first level of the cache has the entry. nullopt: call check().
  std::optional<AccessResult> check_now(const AccessRequest& request, const Region& region);

  trace::Point<Refusal> refusal;  // an access that its key does not grant

  // An entry and its pages were created or destroyed.
  void flush(std::uint32_t pages, std::function<void()> done);

  void reset() {
    delayed_.clear();
    told_hold_.reset();
    flushed_ = {};
  }

  const TranslationCounters& counters() const { return counters_; }

 private:
  struct Walk;
  struct Search;

  using Found = std::function<void(const MemoryRegion*)>;

  Duration hold_up();
  AccessResult check_rights(const MemoryRegion* entry, const AccessRequest& request, const Region& region);
  AccessResult count(AccessResult result, const AccessRequest& request, const Region& region);
  bool enter_now(const MemoryRegion& memory, const Region& place, Translated& translated);
  void find(const std::shared_ptr<Walk>& walk, std::uint32_t index, Found found);
  void look_behind(const std::shared_ptr<Walk>& walk, const MemoryRegion& window);
  void enter(const std::shared_ptr<Walk>& walk, const MemoryRegion& memory, const Region& place);
  void enter_on_demand(const std::shared_ptr<Walk>& walk, const MemoryRegion& memory, const Region& place);
  void collect(const std::shared_ptr<Walk>& walk, const MemoryRegion& memory, const Region& place);
  void seek(const AccessRequest& request, const Region& region, const MemoryRegion& entry, bool waits,
            std::function<void(AccessResult)> done);
  void go_on(const std::shared_ptr<Search>& search);
  void walk(const std::shared_ptr<Walk>& walk);
  bool gone(const Walk& walk) const;
  void finish(const std::shared_ptr<Walk>& walk);
  void later(Duration wait, std::function<void()> action);
  void run_due();

  const TranslationParams params_;
  ContextCache& contexts_;
  TranslationCache& on_demand_;
  Hold told_hold_;
  Duration flushed_;  // end of the last flush
  EventQueue<std::function<void()>> delayed_{[this] { run_due(); }};
  TranslationCounters counters_;
};

// The checks alone: bounds of the region, and rights of the key.
AccessResult check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region);

}  // namespace rnicsim::nic

// Translation and protection: what a key allows (MPT), and where its memory lies on the bus (MTT). A window's key is
// judged by the window's entry; its memory is that of the region it is bound to. When an entry comes or goes the tables
// are flushed of it, ahead of what is looked up meanwhile.
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

// A range of bus addresses, and where it begins in its region.
struct BusRange {
  std::uint64_t address;
  std::uint32_t length;
  std::uint64_t offset;
};

struct Translated {
  AccessResult result = AccessResult::ok;
  bool relaxed = false;                                  // its TLPs may pass writes
  Pasid pasid = 0;                                       // or DeviceMemory::kPlace
  Duration wait{};                                       // from now on, until it is at hand
  boost::container::small_vector<BusRange, 1> ranges{};  // in order; none of no bytes, and of the null region

  Dma::Place place(std::size_t range) const { return {pasid, ranges[range].address, ranges[range].offset}; }
  Dma::Place only_place() const { return ranges.empty() ? Dma::Place{} : place(0); }
};

struct AccessRequest {
  std::uint32_t pd;
  std::uint32_t access;
  Qpn qpn{};                               // who asks
  bool remote = false;                     // the key is a peer's rkey
};

class Translation : public sc_core::sc_module {
 public:
  Translation(sc_core::sc_module_name name, const TranslationParams& params, ContextCache& contexts,
              TranslationCache& on_demand);

  // Calls back at once when all that it takes is at hand, else when it is; a range of no bytes is always good.
  using Done = std::function<void(const Translated&)>;
  [[gnu::noinline]] void translate(const AccessRequest& request, const Region& region, Done done);
  // For who is being called back: of the pages of a region on demand, which may go, or have gone, unless they are held;
  // null: they stay.
  using Hold = std::shared_ptr<TranslationCache::Hold>;
  Hold take_hold() { return std::move(told_hold_); }
  // Protection; and `absent` for a range on demand some page of which has to be asked for.
  [[gnu::noinline]] void check(const AccessRequest& request, const Region& region,
                               std::function<void(AccessResult)> done);
  // Presence alone, of a range on demand: with `waits` when it has been present, or can't be; else ok or absent. Any
  // other range is present, whatever there is to say against it.
  [[gnu::noinline]] void look(const AccessRequest& request, const Region& region, bool waits,
                              std::function<void(AccessResult)> done);

  // --- The answer when it is at hand.
  // No context has to be filled for it. False: translate() must be asked.
  bool translate_now(const AccessRequest& request, const Region& region, Translated& translated);
  // The first level of the cache has it. nullopt: check() must be asked.
  std::optional<AccessResult> check_now(const AccessRequest& request, const Region& region);

  trace::Point<Refusal> refusal;           // an access that its key does not grant

  // An entry and its pages came or went.
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
  AccessResult judge(const MemoryRegion* entry, const AccessRequest& request, const Region& region);
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
  Duration flushed_;                                     // by then
  EventQueue<std::function<void()>> delayed_{[this] { run_due(); }};
  TranslationCounters counters_;
};

// The checks alone: whether the range lies in the region, and what its key grants.
AccessResult check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region);

}  // namespace rnicsim::nic

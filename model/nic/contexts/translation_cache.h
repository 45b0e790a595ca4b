// SPDX-License-Identifier: Apache-2.0
// The address translation cache (ATC) for regions on demand: bus addresses of a process's pages, as the IOMMU reported
// them (ATS), valid until the host invalidates them. Pages that are not present are requested from the host (PRI);
// waiting callers are called back when the page is present.
//
// An invalidation is answered when no DMA uses the pages any more: a caller may use a page only while it holds the
// page, and begin() of a hold fails if the page was invalidated since it was found.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/params.h"
#include "model/base/pcie.h"
#include "model/base/stream.h"
#include "model/nic/contexts/cache.h"
#include "model/nic/contexts/translation_cache_params.h"
#include "model/nic/pcie/dma.h"

namespace rnicsim::nic {

class TranslationCache : public sc_core::sc_module {
 private:
  struct Page;

 public:
  static constexpr std::uint64_t kPage = 4096;
  enum class Presence : std::uint8_t { present, absent, refused };
  // A lookup.
  struct Wanted {
    Pasid pasid = 0;
    std::uint64_t address = 0;  // any address in the page
    bool write = false;
    bool waits = false;       // wait until the page is present; else return `absent` and request the page
    std::uint32_t asker = 0;  // if a request fails, the next lookup of an asker that got `absent` returns
                              // `refused`
  };
  struct Found {
    Presence presence = Presence::refused;
    std::uint64_t address = 0;  // bus address of the page
    Page* page = nullptr;
    std::uint64_t version = 0;
  };
  using Done = std::function<void(const Found&)>;

  // Pages that were found, held together. The destructor releases them.
  class Hold {
   public:
    explicit Hold(TranslationCache& cache) : cache_(cache.self_), life_(cache.life_) {}
    ~Hold() { end(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void add(const Found& found) { pages_.emplace_back(found.page, found.version); }
    // Begins to use the pages. False: one was invalidated since it was found, and none is held.
    bool begin();
    void end();

   private:
    std::weak_ptr<TranslationCache> cache_;  // accesses under way may outlive the cache at the end of a simulation
    std::uint64_t life_;
    bool held_ = false;
    std::vector<std::pair<Page*, std::uint64_t>> pages_;
  };

  TranslationCache(sc_core::sc_module_name name, const TranslationCacheParams& params, Dma& dma);

  // --- The host.
  std::function<PageTranslation(Pasid, std::uint64_t)> translate;
  std::function<bool(const PageRequest&)> request;  // false: the host will not answer
  Output<std::uint32_t> invalidated;                // the tag
  void respond(const PageResponse& response);
  void invalidate(const PageInvalidation& invalidation);

  // Calls back at once if the page is present.
  void find(const Wanted& wanted, Done done);
  void forget(std::uint32_t asker);
  void reset();
  void seed(std::uint64_t seed) { tags_.seed(seed); }  // seed of random replacement

  Duration lookup_time() const { return params_.lookup; }
  const TranslationCacheCounters& counters() const { return counters_; }

 private:
  struct Key {
    Pasid pasid;
    std::uint64_t page;
    auto operator<=>(const Key&) const = default;
  };
  struct Waiting {
    Wanted wanted;
    Done done;
  };
  // A request under way for a page.
  struct Search {
    enum class State : std::uint8_t { translating, requested } state = State::translating;
    bool stale = false;  // invalidated meanwhile: the answer is void
    bool write = false;  // requested for writing
    std::vector<Waiting> waiting{};
    std::vector<std::uint32_t> askers{};  // askers that got `absent`
  };
  // A page since its first lookup. Its number is its key in the cache, because addresses of a program's memory differ
  // between runs.
  struct Page {
    Key key;
    std::uint32_t number = 0;
    std::uint64_t version = 0;  // counts invalidations
    std::uint32_t uses = 0;
    bool writable = false;
    std::uint64_t address = 0;
    std::unique_ptr<Search> search{};
    std::vector<std::uint32_t> failed_for{};
  };
  struct Invalidating {
    Key first;
    Key last;
    std::uint32_t tag;
  };
  struct Answer {
    Page* page;
    PageTranslation translation;
  };

  static Found found(Page& page) { return {Presence::present, page.address, &page, page.version}; }
  Page& page_of(Pasid pasid, std::uint64_t address);
  bool hit(Page& page, bool write);
  bool take_failure(Page& page, std::uint32_t asker);
  void ask(Page& page);
  void answer_due();
  void answered(Page& page, const PageTranslation& translation);
  void ask_for_page(Page& page, bool write);
  void send_request(Page& page);
  void fail(Page& page);
  void released();
  bool used(const Invalidating& range) const;
  void complete(std::uint32_t tag);

  const TranslationCacheParams params_;
  Dma& dma_;
  CacheTags tags_;
  std::map<Key, Page> pages_;
  std::uint32_t next_number_ = 0;
  std::map<std::uint32_t, Page*> requested_;  // by index of the request
  std::uint32_t next_index_ = 0;              // unique, also after a reset
  Fifo<Page*> to_request_;
  std::vector<Invalidating> invalidating_;
  std::vector<std::uint32_t> completing_;  // tags of answers on their way to the host
  std::size_t failures_ = 0;               // sum over failed_for of all pages
  EventQueue<Answer> answers_{[this] { answer_due(); }};
  const std::shared_ptr<TranslationCache> self_{this, [](TranslationCache*) {}};
  std::uint64_t life_ = 0;  // callbacks from before a reset are void
  TranslationCacheCounters counters_;
};

}  // namespace rnicsim::nic

// The cache of the host's translations (ATC), for regions on demand: where a page of a process lies on the bus, as the
// IOMMU told (ATS), for as long as the host does not take it back. A page that is not there is asked of the host (PRI);
// who can wait for it is told when it is.
//
// An invalidation is answered when no DMA uses the pages any more: who finds a page may use it only as long as it holds
// it, and begins to hold only what is still as it was found.
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
  // Who asks, and for what.
  struct Wanted {
    Pasid pasid = 0;
    std::uint64_t address = 0;           // anywhere in the page
    bool write = false;
    bool waits = false;                  // until it is present; else it hears `absent`, and the page is asked for
    std::uint32_t asker = 0;             // who hears `absent` hears at its next look, and nobody else, of a failure
  };
  struct Found {
    Presence presence = Presence::refused;
    std::uint64_t address = 0;           // of the page, on the bus
    Page* page = nullptr;
    std::uint64_t version = 0;
  };
  using Done = std::function<void(const Found&)>;

  // Pages that were found, together. Its end gives them back.
  class Hold {
   public:
    explicit Hold(TranslationCache& cache) : cache_(cache.self_), life_(cache.life_) {}
    ~Hold() { end(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void add(const Found& found) { pages_.emplace_back(found.page, found.version); }
    // From now on they are in use. False: one of them was taken back since it was found; none is held then.
    bool begin();
    void end();

   private:
    std::weak_ptr<TranslationCache> cache_;  // what is under way may outlive it when a simulation ends
    std::uint64_t life_;
    bool held_ = false;
    std::vector<std::pair<Page*, std::uint64_t>> pages_;
  };

  TranslationCache(sc_core::sc_module_name name, const TranslationCacheParams& params, Dma& dma);

  // --- The host.
  std::function<PageTranslation(Pasid, std::uint64_t)> translate;
  std::function<bool(const PageRequest&)> request;         // false: it will not answer
  Output<std::uint32_t> invalidated;                       // the tag
  void respond(const PageResponse& response);
  void invalidate(const PageInvalidation& invalidation);

  // Calls back at once when the page is here.
  void find(const Wanted& wanted, Done done);
  void forget(std::uint32_t asker);
  void reset();
  void seed(std::uint64_t seed) { tags_.seed(seed); }      // seed of random replacement

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
  // What is under way for a page.
  struct Search {
    enum class State : std::uint8_t { translating, requested } state = State::translating;
    bool stale = false;                  // invalidated meanwhile: the answer is not to be relied on
    bool write = false;                  // requested for writing
    std::vector<Waiting> waiting{};
    std::vector<std::uint32_t> askers{};  // who were told that it is absent
  };
  // Known since it was first asked for. Its number stands for it in the cache: where a program's memory lies differs
  // from run to run.
  struct Page {
    Key key;
    std::uint32_t number = 0;
    std::uint64_t version = 0;           // counts invalidations
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
  std::map<std::uint32_t, Page*> requested_;               // by the request's index
  std::uint32_t next_index_ = 0;                           // never again the same, whatever is reset
  Fifo<Page*> to_request_;
  std::vector<Invalidating> invalidating_;
  std::vector<std::uint32_t> completing_;                  // tags, on their way to the host
  std::size_t failures_ = 0;                               // in all pages' failed_for
  EventQueue<Answer> answers_{[this] { answer_due(); }};
  const std::shared_ptr<TranslationCache> self_{this, [](TranslationCache*) {}};
  std::uint64_t life_ = 0;                                 // what is from before a reset is void
  TranslationCacheCounters counters_;
};

}  // namespace rnicsim::nic

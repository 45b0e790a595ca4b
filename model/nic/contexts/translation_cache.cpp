// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/translation_cache.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "model/base/kernel.h"
#include "model/base/policy.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint64_t kAllPages = std::numeric_limits<std::uint64_t>::max();
// A translation completion has 8 bytes.
constexpr std::uint32_t kTranslationBytes = 8;

}  // namespace

void TranslationCacheParams::describe(ParamVisitor& visit) {
  visit.param("entries", entries, "pages of regions on demand whose place is known (ATC)", {1, 1 << 24});
  visit.param("ways", ways, "entries of a set", {1, 64});
  visit.param("replacement", replacement, "policy that selects the entry of a set to evict",
              policy_names<Replacement>());
  visit.param("lookup", lookup, "time of a page's look-up in the ATC; look-ups follow one another", {0, 1e9});
  visit.param("page_requests", page_requests, "page requests in progress at a time (PRI); other requests wait",
              {1, 1 << 16});
  visit.refuse(!CacheTags::can_be(entries, ways), "entries", "is not a multiple of", "ways");
}

void TranslationCacheCounters::describe(CounterVisitor& visit) const {
  visit.counter("lookups", lookups, "lookups", "look-ups of pages of regions on demand");
  visit.counter("hits", hits, "lookups", "look-ups that found the page");
  visit.counter("evictions", evictions, "entries", "entries evicted for other entries");
  visit.counter("translations", translations, "requests", "requests for translations (ATS)");
  visit.counter("page_requests", page_requests, "requests", "requests for pages that were not present (PRI)");
  visit.counter("page_requests_failed", page_requests_failed, "requests", "page requests for pages that do not exist");
  visit.counter("page_request_waits", page_request_waits, "requests",
                "page requests that waited for answers to earlier requests");
  visit.counter("invalidations", invalidations, "messages", "invalidations of translations by the host");
  visit.counter("invalidation_waits", invalidation_waits, "messages",
                "invalidations answered after the end of DMA accesses");
}

TranslationCache::TranslationCache(sc_core::sc_module_name name, const TranslationCacheParams& params, Dma& dma)
    : sc_module(name), params_(params), dma_(dma), tags_(params.entries, params.ways, params.replacement) {}

bool TranslationCache::Hold::begin() {
  const auto cache = cache_.lock();
  if (cache == nullptr || life_ != cache->life_) return false;
  const auto gone = [](const auto& one) { return one.first->version != one.second; };
  if (std::ranges::any_of(pages_, gone)) return false;
  for (const auto& [page, version] : pages_) ++page->uses;
  return held_ = true;
}

void TranslationCache::Hold::end() {
  const auto cache = cache_.lock();
  if (!std::exchange(held_, false) || cache == nullptr || life_ != cache->life_) return;
  for (const auto& [page, version] : pages_) --page->uses;
  if (!cache->invalidating_.empty()) cache->released();
}

TranslationCache::Page& TranslationCache::page_of(Pasid pasid, std::uint64_t address) {
  const Key key{pasid, address / kPage};
  const auto [place, is_new] = pages_.try_emplace(key);
  if (is_new) {
    place->second.key = key;
    place->second.number = next_number_++;
  }
  return place->second;
}

bool TranslationCache::hit(Page& page, bool write) { return (!write || page.writable) && tags_.touch(page.number); }

bool TranslationCache::take_failure(Page& page, std::uint32_t asker) {
  const auto erased = std::erase(page.failed_for, asker);
  failures_ -= erased;
  return erased != 0;
}

void TranslationCache::find(const Wanted& wanted, Done done) {
  auto& page = page_of(wanted.pasid, wanted.address);
  ++counters_.lookups;
  if (hit(page, wanted.write)) {
    ++counters_.hits;
    take_failure(page, wanted.asker);
    return done(found(page));
  }
  if (page.search != nullptr) {
    const bool requested = page.search->state == Search::State::requested;
    if (requested && !wanted.waits && (page.search->write || !wanted.write)) {
      page.search->askers.push_back(wanted.asker);
      return done({Presence::absent});
    }
    page.search->waiting.push_back({wanted, std::move(done)});
    return;
  }
  page.search = std::make_unique<Search>();
  page.search->waiting.push_back({wanted, std::move(done)});
  ask(page);
}

// Like a read request, but with a translation as its result; the IOMMU's walk follows.
void TranslationCache::ask(Page& page) {
  ++counters_.translations;
  page.search->state = Search::State::translating;
  page.search->stale = false;
  auto asked = [this, page = &page, life = life_](AccessResult, const Payload&) {
    if (life != life_) return;
    const auto translation = translate(page->key.pasid, page->key.page * kPage);
    if (translation.walk == Duration{}) return answered(*page, translation);
    answers_.push(now() + translation.walk, {page, translation});
  };
  dma_.read({page.key.pasid, 0, 0}, kTranslationBytes, dma_.closure(std::move(asked)), {.discard = true});
}

void TranslationCache::answer_due() {
  Answer answer;
  while (answers_.pop_due(answer)) answered(*answer.page, answer.translation);
}

void TranslationCache::answered(Page& page, const PageTranslation& translation) {
  auto& search = *page.search;
  if (search.stale) return ask(page);
  if (translation.present) {
    page.address = translation.address;
    page.writable = translation.writable;
    if (!tags_.touch(page.number)) {
      if (const auto out = tags_.insert(page.number); out && *out != page.number) ++counters_.evictions;
    }
  }
  // Callbacks may look up the same page again: first bring the state up to date.
  std::vector<std::pair<Waiting, Found>> told;
  std::vector<Waiting> left;
  bool write = false;
  bool any = false;
  for (auto& one : search.waiting) {
    const bool good = translation.present && (!one.wanted.write || translation.writable);
    if (good) {
      told.emplace_back(std::move(one), found(page));
    } else if (take_failure(page, one.wanted.asker)) {
      told.emplace_back(std::move(one), Found{Presence::refused});
    } else {
      any = true;
      write |= one.wanted.write;
      if (one.wanted.waits) {
        left.push_back(std::move(one));
      } else {
        search.askers.push_back(one.wanted.asker);
        told.emplace_back(std::move(one), Found{Presence::absent});
      }
    }
  }
  search.waiting = std::move(left);
  if (any)
    ask_for_page(page, write);
  else
    page.search.reset();
  for (auto& [one, what] : told) one.done(what);
}

void TranslationCache::ask_for_page(Page& page, bool write) {
  page.search->state = Search::State::requested;
  page.search->write = write;
  if (requested_.size() < params_.page_requests) return send_request(page);
  ++counters_.page_request_waits;
  to_request_.push_back(&page);
}

// A message without data.
void TranslationCache::send_request(Page& page) {
  ++counters_.page_requests;
  const auto index = next_index_++;
  requested_.emplace(index, &page);
  auto arrived = [this, index, page = &page, life = life_](AccessResult, const Payload&) {
    if (life != life_) return;
    const PageRequest message{page->key.pasid, page->key.page * kPage, page->search->write, index};
    if (!request(message)) respond({index, false});
  };
  dma_.write({page.key.pasid, 0, 0}, Payload{}, dma_.closure(std::move(arrived)), {.discard = true});
}

void TranslationCache::respond(const PageResponse& response) {
  const auto asked = requested_.find(response.index);
  if (asked == requested_.end()) return;  // from before a reset
  auto& page = *asked->second;
  requested_.erase(asked);
  if (!to_request_.empty()) {
    auto& next = *to_request_.front();
    to_request_.pop_front();
    send_request(next);
  }
  if (!response.ok) return fail(page);
  // Askers that got `absent` look up again.
  page.search->askers.clear();
  if (page.search->waiting.empty())
    page.search.reset();
  else
    ask(page);
}

void TranslationCache::fail(Page& page) {
  ++counters_.page_requests_failed;
  const auto search = std::move(page.search);
  for (const auto asker : search->askers)
    if (std::ranges::find(page.failed_for, asker) == page.failed_for.end()) {
      page.failed_for.push_back(asker);
      ++failures_;
    }
  for (auto& one : search->waiting) {
    // The page may be present for reading.
    if (search->write && !one.wanted.write)
      find(one.wanted, std::move(one.done));
    else
      one.done({Presence::refused});
  }
}

void TranslationCache::forget(std::uint32_t asker) {
  if (failures_ == 0) return;
  for (auto& [key, page] : pages_) take_failure(page, asker);
}

void TranslationCache::invalidate(const PageInvalidation& invalidation) {
  ++counters_.invalidations;
  const auto first = invalidation.address / kPage;
  const auto last = invalidation.pages > kAllPages - first ? kAllPages : first + invalidation.pages - 1;
  const Invalidating range{{invalidation.pasid, first}, {invalidation.pasid, last}, invalidation.tag};
  const auto end = pages_.upper_bound(range.last);
  for (auto at = pages_.lower_bound(range.first); at != end; ++at) {
    auto& page = at->second;
    ++page.version;
    tags_.erase(page.number);
    failures_ -= page.failed_for.size();
    page.failed_for.clear();
    if (page.search != nullptr && page.search->state == Search::State::translating) page.search->stale = true;
  }
  if (!used(range)) return complete(range.tag);
  ++counters_.invalidation_waits;
  invalidating_.push_back(range);
}

bool TranslationCache::used(const Invalidating& range) const {
  const auto end = pages_.upper_bound(range.last);
  return std::any_of(pages_.lower_bound(range.first), end, [](const auto& one) { return one.second.uses != 0; });
}

void TranslationCache::released() {
  std::vector<std::uint32_t> tags;
  std::erase_if(invalidating_, [&](const Invalidating& range) {
    if (used(range)) return false;
    tags.push_back(range.tag);
    return true;
  });
  for (const auto tag : tags) complete(tag);
}

// The answer goes behind all writes that used the pages.
void TranslationCache::complete(std::uint32_t tag) {
  completing_.push_back(tag);
  auto landed = [this, tag](AccessResult, const Payload&) {
    if (std::erase(completing_, tag) != 0) invalidated(std::uint32_t{tag});
  };
  dma_.write({kKernelPasid, 0, 0}, Payload{}, dma_.closure(std::move(landed)), {.discard = true});
}

// All pending invalidations are answered, so that the host does not wait.
void TranslationCache::reset() {
  ++life_;
  tags_.clear();
  pages_.clear();
  requested_.clear();
  to_request_.clear();
  answers_.clear();
  next_number_ = 0;
  failures_ = 0;
  for (const auto& range : std::exchange(invalidating_, {})) completing_.push_back(range.tag);
  for (const auto tag : std::exchange(completing_, {})) invalidated(std::uint32_t{tag});
}

}  // namespace rnicsim::nic

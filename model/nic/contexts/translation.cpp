// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/translation.h"

#include <algorithm>
#include <utility>

#include "model/nic/contexts/device_memory.h"

namespace rnicsim::nic {
namespace {

// Adds `length` bytes at `address` after the last range.
void extend(Translated& translated, std::uint64_t address, std::uint32_t length, std::uint64_t offset) {
  auto& ranges = translated.ranges;
  if (!ranges.empty() && ranges.back().address + ranges.back().length == address)
    ranges.back().length += length;
  else
    ranges.push_back({address, length, offset});
}

// The part of a range in its first page.
struct PagePart {
  std::uint32_t index;  // in the MTT
  std::uint64_t in_page;
  std::uint32_t length;
};
PagePart first_page(const MemoryRegion& memory, std::uint64_t offset, std::uint32_t length) {
  const auto size = 1ull << memory.log_page;
  const auto in_pages = memory.bus_address + offset;
  const auto in_page = in_pages & (size - 1);
  return {memory.first_page + static_cast<std::uint32_t>(in_pages >> memory.log_page), in_page,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(length, size - in_page))};
}

// The place in its region of a range in a window.
Region behind(const MemoryRegion& window, const Region& region) {
  return {window.region << 8, window.bus_address + (region.address - window.start), region.length};
}

constexpr auto kHostPage = TranslationCache::kPage;
// Pages of a range that are looked up at the same time, and absent pages that are requested before the caller gets
// `absent`.
constexpr std::uint32_t kPagesAtOnce = 16;
constexpr std::uint32_t kMostAbsent = 256;

bool writes(std::uint32_t wanted) {
  return (wanted & (access::kLocalWrite | access::kRemoteWrite | access::kRemoteAtomic)) != 0;
}

// The part of the result that the region's entry gives: the whole result if the region has no pages.
void begin(Translated& translated, const MemoryRegion& memory, const Region& place) {
  translated.pasid = memory.kind == RegionKind::device_memory ? DeviceMemory::kPlace : memory.pasid;
  translated.relaxed = (memory.access & access::kRelaxedOrdering) != 0;
  const auto offset = place.address - memory.start;
  if (memory.log_page == 0 && memory.kind != RegionKind::null)
    extend(translated, memory.bus_address + offset, place.length, offset);
}

}  // namespace

// A translation under way. The walk keeps its results, since they may have left the cache meanwhile.
struct Translation::Walk {
  AccessRequest request;
  Region region;
  Done done;
  MemoryRegion memory{};
  std::uint32_t index = 0;  // index of the region with the memory
  std::uint64_t serial = 0;
  std::uint64_t offset = 0;
  std::uint32_t left = 0;
  Duration wait{};
  Translated result{};
  // Regions on demand:
  Hold hold{};
  std::vector<TranslationCache::Found> found{};  // page by page
  std::size_t awaited = 0;
};

// A search for the pages of a range on demand.
struct Translation::Search {
  TranslationCache::Wanted next;
  std::uint64_t left = 0;  // pages
  std::function<void(AccessResult)> done;
  std::uint32_t under_way = 0;
  std::uint32_t absent = 0;
  bool refused = false;
  bool going_on = false;
  Duration wait{};
};

static Refusal::Why why_of(AccessResult result) {
  switch (result) {
    case AccessResult::bad_range: return Refusal::Why::bad_range;
    case AccessResult::bad_pd: return Refusal::Why::other_pd;
    case AccessResult::denied: return Refusal::Why::no_right;
    default: return Refusal::Why::bad_key;
  }
}

AccessResult check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region) {
  if (memory == nullptr || !memory->valid || memory->key != region.key) return AccessResult::bad_key;
  if (memory->pd != request.pd) return AccessResult::bad_pd;
  // Windows are for remote access only, the null region for local access only.
  const bool other_side = request.remote ? memory->kind == RegionKind::null : memory->is_window();
  if (other_side) return AccessResult::bad_key;
  if (memory->kind == RegionKind::null) return AccessResult::ok;
  if (memory->kind == RegionKind::window2 && memory->qpn != request.qpn.value) return AccessResult::bad_key;
  const auto offset = region.address - memory->start;
  const bool inside =
      region.address >= memory->start && offset <= memory->length && region.length <= memory->length - offset;
  if (!inside) return AccessResult::bad_range;
  return (memory->access & request.access) == request.access ? AccessResult::ok : AccessResult::denied;
}

Translation::Translation(sc_core::sc_module_name name, const TranslationParams& params, ContextCache& contexts,
                         TranslationCache& on_demand)
    : sc_module(name), params_(params), contexts_(contexts), on_demand_(on_demand) {}

void Translation::flush(std::uint32_t pages, std::function<void()> done) {
  const auto takes = params_.flush + params_.flush_page * std::int64_t{pages};
  ++counters_.flushes;
  counters_.flush_busy_ps += static_cast<Counter>(takes.ps);
  flushed_ = std::max(flushed_, now()) + takes;
  later(flushed_ - now(), std::move(done));
}

// Time that a lookup waits for a flush.
inline Duration Translation::hold_up() {
  if (flushed_ <= now()) return {};
  ++counters_.held_up;
  return flushed_ - now();
}

AccessResult Translation::check_rights(const MemoryRegion* entry, const AccessRequest& request, const Region& region) {
  return count(check_access(entry, request, region), request, region);
}

AccessResult Translation::count(AccessResult result, const AccessRequest& request, const Region& region) {
  ++counters_.lookups;
  if (result == AccessResult::ok) return result;
  ++counters_.refused;
  if (refusal)
    refusal({.what = Refusal::What::memory,
             .why = why_of(result),
             .object = region.key,
             .qpn = request.qpn.value,
             .address = region.address});
  return result;
}

bool Translation::translate_now(const AccessRequest& request, const Region& region, Translated& translated) {
  if (region.length == 0) return true;
  // If a fill is necessary, nothing is touched: translate() must find the state unchanged.
  const auto* entry = contexts_.regions.resident(region.key >> 8);
  if (entry == nullptr) return false;
  const auto result = check_access(entry, request, region);
  const bool behind_window = result == AccessResult::ok && entry->is_window();
  const auto place = behind_window ? behind(*entry, region) : region;
  const auto* memory = behind_window ? contexts_.regions.resident(place.key >> 8) : entry;
  if (result == AccessResult::ok &&
      (memory == nullptr || memory->on_demand() || !enter_now(*memory, place, translated)))
    return false;
  Duration wait;
  contexts_.regions.touch(region.key >> 8, wait);
  translated.wait += wait + hold_up();
  translated.result = count(result, request, region);
  if (!behind_window) return true;
  contexts_.regions.touch(place.key >> 8, wait);
  translated.wait += wait;
  return true;
}

// Touches all pages, or none.
bool Translation::enter_now(const MemoryRegion& memory, const Region& place, Translated& translated) {
  begin(translated, memory, place);
  if (memory.log_page == 0) return true;
  const auto offset = place.address - memory.start;
  const auto first = first_page(memory, offset, place.length);
  Duration wait;
  if (first.length == place.length) {
    const auto page = contexts_.pages.touch_resident(first.index, wait);
    if (!page) return false;
    extend(translated, *page + first.in_page, first.length, offset);
    translated.wait += wait;
    return true;
  }
  const auto each_part = [&](auto&& visit) {
    auto at = offset;
    for (auto left = place.length; left != 0;) {
      const auto part = first_page(memory, at, left);
      if (!visit(part, at)) return false;
      at += part.length;
      left -= part.length;
    }
    return true;
  };
  if (!each_part([&](const PagePart& part, std::uint64_t) { return contexts_.pages.resident(part.index); }))
    return false;
  return each_part([&](const PagePart& part, std::uint64_t at) {
    extend(translated, *contexts_.pages.touch(part.index, wait) + part.in_page, part.length, at);
    translated.wait += wait;
    return true;
  });
}

void Translation::translate(const AccessRequest& request, const Region& region, Done done) {
  if (region.length == 0) return done(Translated{});
  const auto state = std::make_shared<Walk>(request, region, std::move(done));
  state->wait = hold_up();
  find(state, region.key >> 8, [this, state](const MemoryRegion* entry) {
    state->result.result = check_rights(entry, state->request, state->region);
    if (state->result.result != AccessResult::ok) return finish(state);
    entry->is_window() ? look_behind(state, *entry) : enter(state, *entry, state->region);
  });
}

void Translation::find(const std::shared_ptr<Walk>& walk, std::uint32_t index, Found found) {
  Duration wait;
  if (const auto* entry = contexts_.regions.touch(index, wait)) {
    walk->wait += wait;
    return found(entry);
  }
  contexts_.regions.await(index, std::move(found));
}

void Translation::look_behind(const std::shared_ptr<Walk>& walk, const MemoryRegion& window) {
  const auto place = behind(window, walk->region);
  walk->index = place.key >> 8;
  walk->serial = contexts_.regions.serial(walk->index);
  find(walk, walk->index, [this, walk, place](const MemoryRegion* memory) {
    if (memory != nullptr && !gone(*walk)) return enter(walk, *memory, place);
    walk->result = {AccessResult::bad_key};
    finish(walk);
  });
}

// `place` lies in the region, and its access is granted.
void Translation::enter(const std::shared_ptr<Walk>& state, const MemoryRegion& memory, const Region& place) {
  if (memory.on_demand()) return enter_on_demand(state, memory, place);
  begin(state->result, memory, place);
  if (memory.log_page == 0) return finish(state);
  state->memory = memory;
  state->index = place.key >> 8;
  state->serial = contexts_.regions.serial(state->index);
  state->offset = place.address - memory.start;
  state->left = place.length;
  walk(state);
}

void Translation::walk(const std::shared_ptr<Walk>& walk) {
  while (walk->left != 0) {
    const auto part = first_page(walk->memory, walk->offset, walk->left);
    const auto take = [walk, part](std::uint64_t page) {
      extend(walk->result, page + part.in_page, part.length, walk->offset);
      walk->offset += part.length;
      walk->left -= part.length;
    };
    Duration wait;
    if (const auto page = contexts_.pages.touch(part.index, wait)) {
      walk->wait += wait;
      take(*page);
      continue;
    }
    return contexts_.pages.await(part.index, [this, walk, take](const PageTable::Found& found) {
      if (gone(*walk) || (!found.page && !found.flushed)) {
        walk->result = {AccessResult::bad_key};
        return finish(walk);
      }
      if (found.page) take(*found.page);
      this->walk(walk);
    });
  }
  finish(walk);
}

// Looks up all pages at once. If one is withdrawn while others are awaited, begin() of the hold fails.
void Translation::enter_on_demand(const std::shared_ptr<Walk>& walk, const MemoryRegion& memory, const Region& place) {
  const auto address = memory.bus_address + (place.address - memory.start);
  const auto pages = (address % kHostPage + place.length - 1) / kHostPage + 1;
  walk->result.pasid = memory.pasid;
  walk->found.resize(pages);
  walk->awaited = pages;
  for (std::size_t i = 0; i < pages; ++i)
    on_demand_.find({.pasid = memory.pasid,
                     .address = address + i * kHostPage,
                     .write = writes(walk->request.access),
                     .waits = true,
                     .asker = walk->request.qpn.value},
                    [this, walk, memory, place, i](const TranslationCache::Found& found) {
                      walk->found[i] = found;
                      if (--walk->awaited == 0) collect(walk, memory, place);
                    });
}

void Translation::collect(const std::shared_ptr<Walk>& walk, const MemoryRegion& memory, const Region& place) {
  using Presence = TranslationCache::Presence;
  const auto offset = place.address - memory.start;
  const auto address = memory.bus_address + offset;
  walk->wait += on_demand_.lookup_time() * static_cast<std::int64_t>(walk->found.size());
  walk->hold = std::make_shared<TranslationCache::Hold>(on_demand_);
  std::uint32_t done = 0;
  for (const auto& found : walk->found) {
    if (found.presence != Presence::present) {
      walk->hold.reset();
      walk->result = {AccessResult::bad_range};
      return finish(walk);
    }
    walk->hold->add(found);
    const auto in_page = (address + done) % kHostPage;
    const auto part = std::min<std::uint64_t>(place.length - done, kHostPage - in_page);
    extend(walk->result, found.address + in_page, static_cast<std::uint32_t>(part), offset + done);
    done += static_cast<std::uint32_t>(part);
  }
  finish(walk);
}

// The region was destroyed meanwhile; another may have its index and its pages' entries.
bool Translation::gone(const Walk& walk) const { return contexts_.regions.serial(walk.index) != walk.serial; }

void Translation::finish(const std::shared_ptr<Walk>& walk) {
  later(walk->wait, [this, walk] {
    told_hold_ = std::move(walk->hold);
    walk->done(walk->result);
    told_hold_.reset();
  });
}

std::optional<AccessResult> Translation::check_now(const AccessRequest& request, const Region& region) {
  if (region.length == 0) return AccessResult::ok;
  if (flushed_ > now()) return std::nullopt;
  const auto* memory = contexts_.regions.touch_first(region.key >> 8);
  return memory != nullptr && !memory->on_demand() ? std::optional(check_rights(memory, request, region))
                                                   : std::nullopt;
}

void Translation::check(const AccessRequest& request, const Region& region, std::function<void(AccessResult)> done) {
  if (region.length == 0) return done(AccessResult::ok);
  Duration wait;
  const auto index = region.key >> 8;
  if (const auto* memory = contexts_.regions.touch(index, wait)) {
    const auto result = check_rights(memory, request, region);
    if (result == AccessResult::ok && memory->on_demand())
      return seek(request, region, *memory, false, std::move(done));
    wait += hold_up();
    if (wait == Duration{}) return done(result);
    return later(wait, [done = std::move(done), result] { done(result); });
  }
  contexts_.regions.await(index, [this, request, region, done = std::move(done)](const MemoryRegion* memory) {
    const auto result = check_rights(memory, request, region);
    if (result == AccessResult::ok && memory->on_demand()) return seek(request, region, *memory, false, done);
    done(result);
  });
}

void Translation::look(const AccessRequest& request, const Region& region, bool waits,
                       std::function<void(AccessResult)> done) {
  if (region.length == 0) return done(AccessResult::ok);
  contexts_.regions.lookup(region.key >> 8,
                           [this, request, region, waits, done = std::move(done)](const MemoryRegion* memory) {
                             const bool asks = memory != nullptr && memory->on_demand() && !memory->is_window() &&
                                               check_access(memory, request, region) == AccessResult::ok;
                             asks ? seek(request, region, *memory, waits, done) : done(AccessResult::ok);
                           });
}

void Translation::seek(const AccessRequest& request, const Region& region, const MemoryRegion& entry, bool waits,
                       std::function<void(AccessResult)> done) {
  if (entry.is_window()) {
    const auto place = behind(entry, region);
    return contexts_.regions.lookup(
        place.key >> 8, [this, request, place, waits, done = std::move(done)](const MemoryRegion* memory) {
          memory != nullptr ? seek(request, place, *memory, waits, done) : done(AccessResult::bad_key);
        });
  }
  const auto address = entry.bus_address + (region.address - entry.start);
  const auto search = std::make_shared<Search>();
  search->next = {entry.pasid, address / kHostPage * kHostPage, writes(request.access), waits, request.qpn.value};
  search->left = (address % kHostPage + region.length - 1) / kHostPage + 1;
  search->done = std::move(done);
  search->wait = on_demand_.lookup_time() * static_cast<std::int64_t>(search->left);
  go_on(search);
}

void Translation::go_on(const std::shared_ptr<Search>& search) {
  using Presence = TranslationCache::Presence;
  search->going_on = true;
  while (search->left != 0 && search->under_way < kPagesAtOnce && search->absent < kMostAbsent && !search->refused) {
    ++search->under_way;
    --search->left;
    const auto wanted = search->next;
    search->next.address += kHostPage;
    on_demand_.find(wanted, [this, search](const TranslationCache::Found& found) {
      --search->under_way;
      search->absent += found.presence == Presence::absent;
      search->refused |= found.presence == Presence::refused;
      if (!search->going_on) go_on(search);
    });
  }
  search->going_on = false;
  if (search->under_way != 0 || search->done == nullptr) return;
  const auto result = search->refused       ? AccessResult::bad_range
                      : search->absent != 0 ? AccessResult::absent
                                            : AccessResult::ok;
  later(search->wait, [done = std::exchange(search->done, nullptr), result] { done(result); });
}

void Translation::later(Duration wait, std::function<void()> action) {
  if (wait == Duration{}) return action();
  delayed_.push(now() + wait, std::move(action));
}

void Translation::run_due() {
  std::function<void()> action;
  while (delayed_.pop_due(action)) action();
}

}  // namespace rnicsim::nic

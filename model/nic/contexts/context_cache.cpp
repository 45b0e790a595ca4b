// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/context_cache.h"

namespace rnicsim::nic {

PageTable::PageTable(IcmAccess& icm, const CacheParams& params) : icm_(icm), residency_(params, 1) {
  residency_.fill = [this](std::uint64_t index) { fill(static_cast<std::uint32_t>(index)); };
  residency_.evicted = [this](std::uint64_t index) { pages_.erase(static_cast<std::uint32_t>(index)); };
}

std::optional<std::uint64_t> PageTable::touch(std::uint32_t index, Duration& wait) {
  const auto resident = residency_.touch(0, index);
  const auto found = pages_.find(index);
  if (!resident || found == pages_.end()) return std::nullopt;
  wait = *resident;
  return found->second;
}

std::optional<std::uint64_t> PageTable::touch_resident(std::uint32_t index, Duration& wait) {
  const auto found = pages_.find(index);
  if (found == pages_.end()) return std::nullopt;
  const auto resident = residency_.touch_resident(0, index);
  if (!resident) return std::nullopt;
  wait = *resident;
  return found->second;
}

void PageTable::await(std::uint32_t index, std::function<void(const Found&)> found) {
  if (const auto page = pages_.find(index); page != pages_.end()) return found({page->second, false});
  // A fill that is already void counts as flushed after this call.
  const auto since = flushes_ - (voided_.contains(index) ? 1 : 0);
  residency_.await(0, index, [this, index, since, found = std::move(found)] {
    const auto page = pages_.find(index);
    if (page != pages_.end()) return found({page->second, false});
    found({std::nullopt, flushes_ != since});
  });
}

void PageTable::fill(std::uint32_t index) {
  const auto read = [this, index](std::optional<PageEntry> entry) {
    if (voided_.erase(index) != 0 || !entry) return residency_.dropped(index);
    pages_[index] = entry->page;
    residency_.filled(index);
  };
  icm_.read<PageEntry>(IcmTable::mtt, index, residency_.params().fill_lines, read);
}

void PageTable::flush(std::uint32_t first, std::uint32_t count) {
  ++flushes_;
  const auto forget = [&](std::uint32_t index) { return index >= first && index - first < count; };
  // Iterates over the smaller set; the order has no effect.
  if (count > pages_.size())
    std::erase_if(pages_, [&](const auto& page) {
      if (!forget(page.first)) return false;
      residency_.forget(page.first);
      return true;
    });
  else
    for (std::uint32_t index = first; index - first < count; ++index)
      if (pages_.erase(index) != 0) residency_.forget(index);
  residency_.for_pending([&](std::uint64_t index) {
    if (forget(static_cast<std::uint32_t>(index))) voided_.insert(static_cast<std::uint32_t>(index));
  });
}

void PageTable::clear() {
  pages_.clear();
  voided_.clear();
  residency_.clear();
}

ContextCounters ContextCache::counters() const {
  auto counters = counters_;
  counters.qpc = qpc.counters();
  counters.cqc = cqs.counters();
  counters.srqc = srqs.counters();
  counters.mpt = regions.counters();
  counters.mtt = pages.counters();
  return counters;
}

void ContextCache::clear() {
  qpc.clear();
  cqs.clear();
  eqs.clear();
  srqs.clear();
  regions.clear();
  pages.clear();
  qps.clear();
  cq_eqns.clear();
  xrc_cqns.clear();
  page_ranges.clear();
  map_.clear();
}

}  // namespace rnicsim::nic

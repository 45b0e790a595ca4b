#include "model/nic/context_cache.h"

#include "model/abi/big_endian.h"

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

void PageTable::await(std::uint32_t index, std::function<void(std::optional<std::uint64_t>)> found) {
  if (const auto page = pages_.find(index); page != pages_.end()) return found(page->second);
  residency_.await(0, index, [this, index, found = std::move(found)] {
    const auto page = pages_.find(index);
    found(page == pages_.end() ? std::nullopt : std::optional(page->second));
  });
}

void PageTable::fill(std::uint32_t index) {
  icm_.read<abi::Mtt>(abi::IcmTable::mtt, index, residency_.params().fill_lines, [this, index](std::optional<abi::Mtt> entry) {
    const bool voided = voided_.erase(index) != 0;
    if (entry && !voided) pages_[index] = entry->page;
    residency_.filled(index);
    if (voided) residency_.forget(index);
  });
}

void PageTable::flush(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t index = first; index - first < count; ++index) {
    if (pages_.erase(index) != 0) residency_.forget(index);
    if (residency_.pending(index)) voided_.insert(index);
  }
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
  counters.mpt = regions.counters();
  counters.mtt = pages.counters();
  return counters;
}

void ContextCache::clear() {
  qpc.clear();
  cqs.clear();
  eqs.clear();
  regions.clear();
  pages.clear();
  qps.clear();
  cq_eqns.clear();
  page_ranges.clear();
  map_.clear();
}

}  // namespace rnicsim::nic

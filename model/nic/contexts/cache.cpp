// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/cache.h"

#include <algorithm>
#include <new>
#include <utility>

#include "model/base/kernel.h"
#include "model/base/policy.h"

namespace rnicsim::nic {
namespace {

std::uint64_t scrambled(std::uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return key ^ key >> 32;
}

std::uint64_t in_range(std::uint64_t key, std::uint64_t count) { return (scrambled(key) & 0xffffffff) * count >> 32; }

}  // namespace

void CacheParams::describe(ParamVisitor& visit) {
  visit.param("l0_entries", l0_entries, "entries of the first level, for each client", {0, 1 << 20});
  visit.param("l1_entries", l1_entries, "entries of the second level; 0: every access misses", {0, 1 << 24});
  visit.param("ways", ways, "entries of a set", {1, 64});
  visit.param("banks", banks, "banks of the second level: each serves one access at a time", {1, 64});
  visit.param("l1_latency", l1_latency, "latency of a hit in the second level", {0, 1e9});
  visit.param("bank_cycle", bank_cycle, "time that an access occupies a bank", {0, 1e9});
  visit.param("miss_slots", miss_slots, "fills in progress at a time", {1, 1024});
  visit.param("fill_lines", fill_lines, "64 B lines that a fill reads from ICM", {1, 64});
  visit.param("hit_under_miss", hit_under_miss,
              "true: accesses pass an access that misses; false: a client's accesses wait for the miss");
  visit.param("replacement", replacement, "policy that selects the entry of a set to evict",
              policy_names<Replacement>());
  visit.refuse(!CacheTags::can_be(l0_entries, ways), "l0_entries", "is not a multiple of", "ways");
  visit.refuse(!CacheTags::can_be(l1_entries, ways), "l1_entries", "is not a multiple of", "ways");
  visit.refuse(l1_entries != 0 && l0_entries > l1_entries, "l0_entries",
               "is more than the second level holds:", "l1_entries");
}

void CacheCounters::describe(CounterVisitor& visit) const {
  visit.counter("lookups", lookups, "lookups", "accesses");
  visit.counter("l0_hits", l0_hits, "lookups", "accesses that hit the first level");
  visit.counter("l1_hits", l1_hits, "lookups", "accesses that hit the second level");
  visit.counter("misses", misses, "lookups", "accesses that miss both levels");
  visit.counter("evictions", evictions, "entries", "entries evicted for other entries");
  visit.counter("slot_waits", slot_waits, "lookups", "misses that waited for a miss slot");
  slots.describe(visit);
}

CacheTags::CacheTags(std::uint32_t entries, std::uint32_t ways, std::string_view replacement)
    : sets_(entries / std::min(ways, std::max(entries, 1u))),
      ways_(std::min(ways, entries)),
      entries_(static_cast<CacheWay*>(std::calloc(std::max(entries, 1u), sizeof(CacheWay)))),
      found_(entries_.get()),
      replacement_(make_policy<Replacement>(replacement)) {
  if (!entries_) throw std::bad_alloc();
}

bool CacheTags::can_be(std::uint32_t entries, std::uint32_t ways) { return entries < ways || entries % ways == 0; }

CacheWay* CacheTags::set_of(std::uint64_t key) const { return entries_.get() + in_range(key, sets_) * ways_; }

std::optional<std::uint64_t> CacheTags::insert(std::uint64_t key) {
  if (ways_ == 0) return key;
  auto* set = set_of(key);
  auto& way = set[replacement_->way_for_another({set, ways_})];
  const auto displaced = std::exchange(way, {name_of(key), ++uses_});
  found_ = &way;
  return displaced.empty() ? std::nullopt : std::optional(displaced.name - name_of(0));
}

bool CacheTags::erase(std::uint64_t key) {
  auto* way = find(key);
  if (way == nullptr) return false;
  *way = {};
  return true;
}

void CacheTags::clear() {
  std::fill_n(entries_.get(), std::size_t{sets_} * ways_, CacheWay{});
  uses_ = 0;
  replacement_->clear();
}

Cache::Cache(const CacheParams& params, std::size_t clients)
    : params_(params),
      l1_(params.l1_entries, params.ways, params.replacement),
      bank_free_(params.banks),
      slots_(params.miss_slots, counters_.slots) {
  l0_.reserve(clients);
  for (std::size_t i = 0; i < clients; ++i) l0_.emplace_back(params.l0_entries, params.ways, params.replacement);
}

Cache::Outcome Cache::look_up(std::size_t client, std::uint64_t key) {
  if (const auto wait = look_up_resident(client, key)) return {true, *wait};
  ++counters_.lookups;
  ++counters_.misses;
  return {false, bank_wait(key) + params_.l1_latency};
}

std::optional<Duration> Cache::look_up_resident(std::size_t client, std::uint64_t key) {
  if (look_up_first(client, key)) return Duration{};
  if (!l1_.touch(key)) return std::nullopt;
  ++counters_.lookups;
  ++counters_.l1_hits;
  l0_[client].insert(key);
  return bank_wait(key) + params_.l1_latency;
}

std::optional<std::uint64_t> Cache::insert(std::size_t client, std::uint64_t key) {
  if (l1_.touch(key)) return std::nullopt;
  const auto victim = l1_.insert(key);
  if (victim) {
    ++counters_.evictions;
    for (auto& level : l0_) level.erase(*victim);
  }
  if (victim != key) l0_[client].insert(key);
  return victim;
}

void Cache::erase(std::uint64_t key) {
  l1_.erase(key);
  for (auto& level : l0_) level.erase(key);
}

void Cache::clear() {
  l1_.clear();
  for (auto& level : l0_) level.clear();
  slots_.clear();
  std::ranges::fill(bank_free_, Duration{});
}

Duration Cache::bank_wait(std::uint64_t key) {
  auto& free = bank_free_[in_range(~key, bank_free_.size())];
  const auto start = std::max(now(), free);
  free = start + params_.bank_cycle;
  return start - now();
}

void Cache::begin_fill(std::function<void()> start) {
  if (!slots_.take(std::move(start))) ++counters_.slot_waits;
}

void Cache::end_fill() { slots_.give_back(); }

}  // namespace rnicsim::nic

#include "model/nic/cache.h"

#include <algorithm>
#include <utility>

#include "model/base/kernel.h"

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
  visit.param("banks", banks, "of the second level: each serves one access at a time", {1, 64});
  visit.param("l1_latency", l1_latency, "what misses the first level and hits the second waits so long", {0, 1e9});
  visit.param("bank_cycle", bank_cycle, "a bank is busy with an access", {0, 1e9});
  visit.param("miss_slots", miss_slots, "fills under way at a time", {1, 1024});
  visit.param("fill_lines", fill_lines, "64 B lines that a fill reads from ICM", {1, 64});
  visit.param("random_replacement", random_replacement,
              "a random entry of the set leaves; else the least recently used");
  visit.refuse(!CacheTags::can_be(l0_entries, ways), "l0_entries", "is no multiple of", "ways");
  visit.refuse(!CacheTags::can_be(l1_entries, ways), "l1_entries", "is no multiple of", "ways");
  visit.refuse(l1_entries != 0 && l0_entries > l1_entries, "l0_entries", "is more than the second level holds:",
               "l1_entries");
}

void CacheCounters::describe(CounterVisitor& visit) const {
  visit.counter("lookups", lookups, "lookups", "accesses");
  visit.counter("l0_hits", l0_hits, "lookups", "found in the first level");
  visit.counter("l1_hits", l1_hits, "lookups", "found in the second level");
  visit.counter("misses", misses, "lookups", "found in neither");
  visit.counter("evictions", evictions, "entries", "that left for others");
  visit.counter("slot_waits", slot_waits, "lookups", "misses that waited for a miss slot");
  slots.describe(visit);
}

CacheTags::CacheTags(std::uint32_t entries, std::uint32_t ways, bool random_replacement)
    : ways_(std::min(ways, std::max(entries, 1u))),
      sets_(entries / ways_),
      random_(random_replacement),
      entries_(sets_ * ways_) {}

bool CacheTags::can_be(std::uint32_t entries, std::uint32_t ways) { return entries < ways || entries % ways == 0; }

std::size_t CacheTags::set_of(std::uint64_t key) const { return in_range(key, sets_) * ways_; }

CacheTags::Way* CacheTags::find(std::uint64_t key) {
  if (sets_ == 0) return nullptr;
  auto* way = entries_.data() + set_of(key);
  for (const auto* const end = way + ways_; way != end; ++way)
    if (way->key == key) return way;
  return nullptr;
}

bool CacheTags::touch(std::uint64_t key) {
  auto* way = find(key);
  if (way == nullptr) return false;
  way->used = ++uses_;
  return true;
}

// Empty ones were never used.
CacheTags::Way* CacheTags::victim(Way* set) {
  auto* oldest = set;
  for (auto* way = set + 1; way != set + ways_; ++way)
    if (way->used < oldest->used) oldest = way;
  return random_ && oldest->key != kEmpty ? set + next_random() % ways_ : oldest;
}

std::optional<std::uint64_t> CacheTags::insert(std::uint64_t key) {
  if (sets_ == 0) return key;
  auto* way = victim(entries_.data() + set_of(key));
  const auto displaced = std::exchange(way->key, key);
  way->used = ++uses_;
  return displaced == kEmpty ? std::nullopt : std::optional(displaced);
}

bool CacheTags::erase(std::uint64_t key) {
  auto* way = find(key);
  if (way == nullptr) return false;
  *way = {};
  return true;
}

void CacheTags::clear() {
  std::ranges::fill(entries_, Way{});
  uses_ = 0;
  random_state_ = 1;
}

std::uint64_t CacheTags::next_random() {
  random_state_ = random_state_ * 6364136223846793005ull + 1442695040888963407ull;
  return random_state_ >> 33;
}

Cache::Cache(const CacheParams& params, std::size_t clients)
    : params_(params),
      l0_(clients, CacheTags(params.l0_entries, params.ways, params.random_replacement)),
      l1_(params.l1_entries, params.ways, params.random_replacement),
      bank_free_(params.banks),
      slots_(params.miss_slots, counters_.slots) {}

Cache::Outcome Cache::look_up(std::size_t client, std::uint64_t key) {
  ++counters_.lookups;
  if (l0_[client].touch(key)) {
    ++counters_.l0_hits;
    return {true, {}};
  }
  const auto wait = bank_wait(key) + params_.l1_latency;
  if (!l1_.touch(key)) {
    ++counters_.misses;
    return {false, wait};
  }
  ++counters_.l1_hits;
  l0_[client].insert(key);
  return {true, wait};
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

// A two-level cache of the device: which entries it holds, not what they contain. Each client has a first level of its
// own; the second is shared and inclusive: what leaves it leaves the first levels too. Both are set-associative.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/contexts/miss_slots.h"
#include "model/nic/contexts/replacement.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct CacheParams {
  std::uint32_t l0_entries = 0;
  std::uint32_t l1_entries = 0;
  std::uint32_t ways = 8;
  std::uint32_t banks = 4;
  Duration l1_latency = 45_ns;
  Duration bank_cycle = 2_ns;
  std::uint32_t miss_slots = 4;
  std::uint32_t fill_lines = 1;
  std::string replacement = "lru";

  void describe(ParamVisitor& visit);
};

struct CacheCounters {
  Counter lookups = 0;
  Counter l0_hits = 0;
  Counter l1_hits = 0;
  Counter misses = 0;
  Counter evictions = 0;
  Counter slot_waits = 0;
  MissSlotsCounters slots;

  void describe(CounterVisitor& visit) const;
};

// One level: keys in sets.
class CacheTags {
 public:
  // `replacement` as registered (replacement.h).
  CacheTags(std::uint32_t entries, std::uint32_t ways, std::string_view replacement);
  // Whole sets; fewer entries than ways are one set.
  static bool can_be(std::uint32_t entries, std::uint32_t ways);

  bool contains(std::uint64_t key) const { return find(set_of(key), key) != ways_; }
  bool touch(std::uint64_t key) {                        // true: it is here, and used
    const auto set = set_of(key);
    const auto way = find(set, key);
    if (way == ways_) return false;
    use(set, way);
    return true;
  }
  std::optional<std::uint64_t> insert(std::uint64_t key);  // not here yet; what it displaced
  bool erase(std::uint64_t key);
  void clear();

 private:
  std::size_t set_of(std::uint64_t key) const;           // where it begins
  void use(std::size_t set, std::size_t way) {
    if (!newest_first_) return replacement_->used(ways_of(set), way);
    const auto key = keys_[set + way];
    for (; way != 0; --way) keys_[set + way] = keys_[set + way - 1];
    keys_[set] = key;
  }
  std::span<std::uint64_t> ways_of(std::size_t set) { return {keys_.data() + set, ways_}; }
  std::size_t find(std::size_t set, std::uint64_t key) const {  // its way; or ways_
    std::size_t way = 0;
    while (way != ways_ && keys_[set + way] != key) ++way;
    return way;
  }

  std::uint32_t sets_;
  std::uint32_t ways_;                                   // 0: no entries
  bool newest_first_;
  std::vector<std::uint64_t> keys_;
  std::unique_ptr<Replacement> replacement_;
};

class Cache {
 public:
  Cache(const CacheParams& params, std::size_t clients);

  struct Outcome {
    bool resident;
    Duration wait;                                       // until it is at hand
  };
  Outcome look_up(std::size_t client, std::uint64_t key);
  // The same of what is resident; nullopt: it is not, and that it was asked changes nothing.
  std::optional<Duration> look_up_resident(std::size_t client, std::uint64_t key);
  // A look would find it; that it was asked changes nothing.
  bool resident(std::uint64_t key) const { return l1_.contains(key); }
  // After a fill: what had to leave the cache for it.
  std::optional<std::uint64_t> insert(std::size_t client, std::uint64_t key);
  void erase(std::uint64_t key);
  void clear();

  // A miss takes a slot until its fill is done: `start` is called when there is one.
  void begin_fill(std::function<void()> start);
  void end_fill();

  const CacheParams& params() const { return params_; }
  const CacheCounters& counters() const { return counters_; }

 private:
  Duration bank_wait(std::uint64_t key);

  const CacheParams params_;
  std::vector<CacheTags> l0_;
  CacheTags l1_;
  std::vector<Duration> bank_free_;
  CacheCounters counters_;
  MissSlots slots_;
};

}  // namespace rnicsim::nic

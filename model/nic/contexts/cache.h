// SPDX-License-Identifier: Apache-2.0
// A two-level cache: which entries are resident, not their contents. Each client has a first level of its own. The
// second level is shared and inclusive: an entry that leaves it also leaves the first levels. Both are set-associative.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/params.h"
#include "model/nic/contexts/cache_params.h"
#include "model/nic/contexts/miss_slots.h"
#include "model/nic/contexts/replacement.h"

namespace rnicsim::nic {

// One level: keys in sets of ways.
class CacheTags {
 public:
  // `replacement`: a registered name (replacement.h).
  CacheTags(std::uint32_t entries, std::uint32_t ways, std::string_view replacement);
  // True if `entries` are whole sets; fewer entries than ways are one set.
  static bool can_be(std::uint32_t entries, std::uint32_t ways);

  bool contains(std::uint64_t key) const { return find(key) != nullptr; }
  bool touch(std::uint64_t key) {  // true: resident; updates its last use
    auto* way = find(key);
    if (way == nullptr) return false;
    way->used = ++uses_;
    return true;
  }
  std::optional<std::uint64_t> insert(std::uint64_t key);  // `key` is not resident; returns the displaced key
  bool erase(std::uint64_t key);
  void clear();
  void seed(std::uint64_t seed) { replacement_->seed(seed); }

 private:
  // calloc() memory: pages that are never used stay unmapped.
  struct Free {
    void operator()(CacheWay* ways) const { std::free(ways); }
  };

  static std::uint64_t name_of(std::uint64_t key) { return key + 1; }
  CacheWay* set_of(std::uint64_t key) const;
  CacheWay* find(std::uint64_t key) const {
    const auto name = name_of(key);
    if (found_->name == name) return found_;
    auto* way = set_of(key);
    for (const auto* end = way + ways_; way != end; ++way)
      if (way->name == name) return found_ = way;
    return nullptr;
  }

  std::uint32_t sets_;
  std::uint32_t ways_;  // 0: the level has no entries
  std::unique_ptr<CacheWay[], Free> entries_;
  mutable CacheWay* found_;  // last entry found: most often it is looked up again
  std::uint64_t uses_ = 0;
  std::unique_ptr<Replacement> replacement_;
};

class Cache {
 public:
  Cache(const CacheParams& params, std::size_t clients);

  struct Outcome {
    bool resident;
    Duration wait;  // time until the entry is available
  };
  Outcome look_up(std::size_t client, std::uint64_t key);
  // Looks up a resident entry; nullopt: not resident, and nothing has changed.
  std::optional<Duration> look_up_resident(std::size_t client, std::uint64_t key);
  // Looks up in the first level only; false: nothing has changed.
  bool look_up_first(std::size_t client, std::uint64_t key) {
    if (!l0_[client].touch(key)) return false;
    ++counters_.lookups;
    ++counters_.l0_hits;
    return true;
  }
  // True if a lookup would hit; changes nothing.
  bool resident(std::uint64_t key) const { return l1_.contains(key); }
  // Inserts a key after a fill. Returns the displaced key.
  std::optional<std::uint64_t> insert(std::size_t client, std::uint64_t key);
  void erase(std::uint64_t key);
  void clear();
  // Seed of replacement policies that draw random numbers.
  void seed(std::uint64_t seed) {
    l1_.seed(seed);
    for (auto& level : l0_) level.seed(seed);
  }

  // A miss occupies a slot until end_fill(): `start` is called when a slot is free.
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

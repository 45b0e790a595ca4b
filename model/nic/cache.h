// A two-level cache of the device: which entries it holds, not what they contain. Each client has a first level of its
// own; the second is shared and inclusive: what leaves it leaves the first levels too. Both are set-associative.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/miss_slots.h"

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
  bool random_replacement = false;

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
  CacheTags(std::uint32_t entries, std::uint32_t ways, bool random_replacement);
  // Whole sets; fewer entries than ways are one set.
  static bool can_be(std::uint32_t entries, std::uint32_t ways);

  bool contains(std::uint64_t key) const { return const_cast<CacheTags*>(this)->find(key) != nullptr; }
  bool touch(std::uint64_t key);                         // true: it is here; it is now the last to go
  std::optional<std::uint64_t> insert(std::uint64_t key);  // not here yet; what it displaced
  bool erase(std::uint64_t key);
  void clear();

 private:
  struct Way {
    std::uint64_t key = kEmpty;
    std::uint64_t used = 0;
  };
  static constexpr std::uint64_t kEmpty = ~0ull;

  std::size_t set_of(std::uint64_t key) const;           // where it begins
  Way* find(std::uint64_t key);
  Way* victim(Way* set);
  std::uint64_t next_random();

  const std::uint32_t ways_;
  const std::uint64_t sets_;
  const bool random_;
  std::vector<Way> entries_;
  std::uint64_t uses_ = 0;
  std::uint64_t random_state_ = 1;
};

class Cache {
 public:
  Cache(const CacheParams& params, std::size_t clients);

  struct Outcome {
    bool resident;
    Duration wait;                                       // until it is at hand
  };
  Outcome look_up(std::size_t client, std::uint64_t key);
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

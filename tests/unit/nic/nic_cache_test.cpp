// SPDX-License-Identifier: Apache-2.0
// The context cache's bookkeeping against simple models.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/base/kernel.h"
#include "model/nic/contexts/residency.h"

namespace rnicsim::nic {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

using Key = std::uint64_t;
using Displaced = std::optional<Key>;

// One set: keys from the least to the most recently used.
struct LruSet {
  std::size_t ways;
  std::deque<Key> keys{};

  bool touch(Key key) {
    const auto found = std::ranges::find(keys, key);
    if (found == keys.end()) return false;
    keys.erase(found);
    keys.push_back(key);
    return true;
  }
  Displaced insert(Key key) {
    if (ways == 0) return key;
    keys.push_back(key);
    if (keys.size() <= ways) return std::nullopt;
    const auto displaced = keys.front();
    keys.pop_front();
    return displaced;
  }
  bool erase(Key key) { return std::erase(keys, key) != 0; }
};

// --- One level, of one set.
void walk_one_set(std::uint32_t entries, std::uint32_t ways) {
  CacheTags tags(entries, ways, "lru");
  LruSet model{std::min(entries, ways)};
  const auto steps = *rc::gen::container<std::vector<std::pair<int, Key>>>(
      rc::gen::pair(rc::gen::inRange(0, 12), rc::gen::inRange<Key>(0, 2 * entries + 2)));
  for (const auto& [what, key] : steps) {
    if (what == 0) {
      RC_ASSERT(tags.erase(key) == model.erase(key));
    } else if (what == 1) {
      tags.clear();
      model.keys.clear();
    } else {
      const bool here = model.touch(key);
      RC_ASSERT(tags.touch(key) == here);
      if (!here) RC_ASSERT(tags.insert(key) == model.insert(key));
    }
  }
}

}  // namespace

RC_GTEST_PROP(CacheTagsOfOneSet, TheLeastRecentlyUsedLeaves, ()) {
  const auto entries = *rc::gen::inRange(1u, 17u);
  walk_one_set(entries, entries);
}
RC_GTEST_PROP(CacheTagsOfOneSet, MoreWaysThanEntriesAreNoMoreEntries, ()) {
  const auto entries = *rc::gen::inRange(1u, 9u);
  walk_one_set(entries, entries + *rc::gen::inRange(1u, 56u));
}

TEST(CacheTagsOfNothing, KeepsNothing) {
  CacheTags tags(0, 8, "lru");
  EXPECT_EQ(tags.insert(5), Displaced{5});
  EXPECT_FALSE(tags.touch(5));
  EXPECT_FALSE(tags.erase(5));
  tags.clear();
}

// The test finds the sets from outside: keys that displace one another share a set. Each set has its own order, and at
// most `ways` entries.
RC_GTEST_PROP(CacheTagsOfSets, EachSetIsItsOwnLru, ()) {
  const auto ways = *rc::gen::inRange(1u, 5u);
  const auto entries = ways * *rc::gen::inRange(2u, 9u);
  constexpr Key kKeys = 200;
  // Finds keys that share a set: in a cache with as many sets of one way, they displace one another.
  CacheTags direct(entries / ways, 1, "lru");
  std::map<Key, Key> set_of;
  for (Key key = 0; key < kKeys; ++key) {
    for (const auto& [other, set] : set_of) {
      if (other != set) continue;  // a set is named by its first key
      direct.clear();
      direct.insert(other);
      if (direct.insert(key) == Displaced{other}) {
        set_of[key] = set;
        break;
      }
    }
    set_of.try_emplace(key, key);
  }
  CacheTags tags(entries, ways, "lru");
  std::map<Key, LruSet> model;
  const auto steps = *rc::gen::container<std::vector<Key>>(rc::gen::inRange<Key>(0, kKeys));
  for (const auto key : steps) {
    auto& set = model.try_emplace(set_of.at(key), LruSet{ways}).first->second;
    const bool here = set.touch(key);
    RC_ASSERT(tags.touch(key) == here);
    if (!here) RC_ASSERT(tags.insert(key) == set.insert(key));
  }
}

TEST(CacheTagsOfSets, AllSetsAreUsed) {
  CacheTags tags(64, 1, "lru");
  int displaced = 0;
  for (Key key = 0; key < 1000; ++key) displaced += tags.insert(key).has_value();
  EXPECT_EQ(displaced, 1000 - 64);
}

TEST(RandomReplacement, DisplacesOneOfTheSetAndRepeatsItself) {
  const auto run = [] {
    CacheTags tags(4, 4, "random");
    std::set<Key> here;
    std::vector<Key> victims;
    for (Key key = 0; key < 200; ++key) {
      const auto victim = tags.insert(key);
      EXPECT_EQ(victim.has_value(), key >= 4);
      here.insert(key);
      if (!victim) continue;
      EXPECT_EQ(here.erase(*victim), 1u);
      victims.push_back(*victim);
    }
    return victims;
  };
  const auto victims = run();
  EXPECT_EQ(victims, run());
  std::set<Key> ages;
  for (std::size_t i = 0; i < victims.size(); ++i) ages.insert(i + 4 - victims[i]);
  EXPECT_GT(ages.size(), 4u);  // not always the oldest
}

// --- Two levels of one set each, so that simple lists are the model.
namespace {

struct TwoLevels {
  TwoLevels(const CacheParams& p, std::size_t clients) : l0(clients, LruSet{p.l0_entries}), l1{p.l1_entries} {}
  std::vector<LruSet> l0;
  LruSet l1;

  // 0: found in the first level, 1: in the second, 2: in neither.
  int look_up(std::size_t client, Key key) {
    if (l0[client].touch(key)) return 0;
    if (!l1.touch(key)) return 2;
    l0[client].insert(key);
    return 1;
  }
  Displaced insert(std::size_t client, Key key) {
    if (l1.touch(key)) return std::nullopt;
    const auto victim = l1.insert(key);
    if (victim)
      for (auto& level : l0) level.erase(*victim);
    if (victim != key) l0[client].insert(key);
    return victim;
  }
};

CacheParams small_cache() {
  CacheParams params;
  params.l0_entries = *rc::gen::inRange(0u, 4u);
  params.l1_entries = *rc::gen::inRange(0u, 9u);
  params.ways = 64;
  params.miss_slots = *rc::gen::inRange(1u, 4u);
  return params;
}

}  // namespace

RC_GTEST_PROP(CacheOfTwoLevels, IsInclusiveAndHasAFirstLevelForEachClient, ()) {
  const auto params = small_cache();
  Cache cache(params, 3);
  TwoLevels model(params, 3);
  Counter hits[3] = {}, evictions = 0;
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, std::size_t, Key>>>(
      rc::gen::tuple(rc::gen::inRange(0, 10), rc::gen::inRange<std::size_t>(0, 3), rc::gen::inRange<Key>(0, 12)));
  for (const auto& [what, client, key] : steps) {
    if (what == 0) {
      cache.erase(key);
      for (auto& level : model.l0) level.erase(key);
      model.l1.erase(key);
      continue;
    }
    const auto level = model.look_up(client, key);
    ++hits[level];
    const auto outcome = cache.look_up(client, key);
    RC_ASSERT(outcome.resident == (level != 2));
    RC_ASSERT((outcome.wait == Duration{}) == (level == 0));
    if (level == 2 && what > 1) {
      const auto victim = model.insert(client, key);
      RC_ASSERT(cache.insert(client, key) == victim);
      evictions += victim.has_value();
    }
    for (const auto& first : model.l0)
      for (const auto inside : first.keys) RC_ASSERT(std::ranges::count(model.l1.keys, inside) == 1);
  }
  const auto& counters = cache.counters();
  RC_ASSERT(counters.l0_hits == hits[0]);
  RC_ASSERT(counters.l1_hits == hits[1]);
  RC_ASSERT(counters.misses == hits[2]);
  RC_ASSERT(counters.lookups == hits[0] + hits[1] + hits[2]);
  RC_ASSERT(counters.evictions == evictions);
}

// A bank serves one access at a time; hits in the first level need no bank.
RC_GTEST_PROP(CacheBanks, AccessesOfOneBankFollowOneAnother, ()) {
  CacheParams params;
  params.l1_entries = 64;
  params.ways = 64;
  params.banks = *rc::gen::inRange(1u, 5u);
  params.bank_cycle = {*rc::gen::inRange<std::int64_t>(0, 5000)};
  params.l1_latency = {*rc::gen::inRange<std::int64_t>(0, 50'000)};
  // Finds keys that share a bank: the second of two simultaneous accesses waits.
  auto probing = params;
  probing.bank_cycle = {1};
  const auto share = [&](Key a, Key b) {
    Cache probe(probing, 1);
    probe.look_up(0, a);
    return probe.look_up(0, b).wait > probing.l1_latency;
  };
  Cache cache(params, 1);
  std::vector<Key> seen;
  const auto keys = *rc::gen::container<std::vector<Key>>(rc::gen::inRange<Key>(0, 40));
  for (const auto key : keys) {
    const auto ahead = std::ranges::count_if(seen, [&](Key other) { return share(other, key); });
    RC_ASSERT(cache.look_up(0, key).wait == params.l1_latency + params.bank_cycle * ahead);
    seen.push_back(key);
    if (params.banks == 1) RC_ASSERT(static_cast<std::size_t>(ahead) + 1 == seen.size());
  }
}

// --- Fills: number at a time, order, joined misses, evictions.
namespace {

struct Fills {
  Fills(const CacheParams& params, std::size_t clients) : residency(params, clients) {
    residency.fill = [this](Key key) {
      RC_ASSERT(std::ranges::count(under_way, key) == 0);
      RC_ASSERT(!held.contains(key));
      under_way.push_back(key);
      most = std::max(most, under_way.size());
    };
    residency.evicted = [this](Key key) { RC_ASSERT(held.erase(key) == 1); };
  }
  void finish(std::size_t which) {
    const auto key = under_way[which];
    under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
    RC_ASSERT(held.insert(key).second);
    residency.filled(key);
  }

  Residency residency;
  std::vector<Key> under_way;
  std::set<Key> held;  // decoded contexts: read and not evicted
  std::size_t most = 0;
};

}  // namespace

RC_GTEST_PROP(ResidencyFills, AreFewInOrderJoinedAndEvictedOnce, ()) {
  const auto params = small_cache();
  Fills fills(params, 3);
  std::map<Key, std::deque<int>> waiting;
  std::deque<Key> fill_order;  // keys that wait for a slot or are being filled, in order of their first miss
  int number = 0, served = 0;
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, std::size_t, Key>>>(
      rc::gen::tuple(rc::gen::inRange(0, 10), rc::gen::inRange<std::size_t>(0, 3), rc::gen::inRange<Key>(0, 12)));
  const auto finish = [&](std::size_t which) {
    const auto key = fills.under_way[which % fills.under_way.size()];
    fills.finish(which % fills.under_way.size());
    RC_ASSERT(waiting[key].empty());
    std::erase(fill_order, key);
  };
  for (const auto& [what, client, key] : steps) {
    if (what < 4 && !fills.under_way.empty()) {
      finish(client);
    } else if (what == 9) {
      fills.residency.forget(key);
      fills.held.erase(key);
    } else if (fills.residency.touch(client, key)) {
      RC_ASSERT(fills.held.contains(key));
    } else {
      const int me = number++;
      waiting[key].push_back(me);
      if (std::ranges::count(fill_order, key) == 0) fill_order.push_back(key);
      fills.residency.await(client, key, [&, me, key = key] {
        RC_ASSERT(fills.held.contains(key));  // waiting accesses get the context before it may be evicted
        RC_ASSERT(waiting[key].front() == me);
        waiting[key].pop_front();
        ++served;
      });
    }
    RC_ASSERT(fills.under_way.size() == std::min<std::size_t>(fill_order.size(), params.miss_slots));
    for (const auto under_way : fills.under_way) RC_ASSERT(std::ranges::count(fill_order, under_way) == 1);
    RC_ASSERT(fills.held.size() <= params.l1_entries);
  }
  while (!fills.under_way.empty()) finish(0);
  RC_ASSERT(served == number);
  RC_ASSERT(fills.most <= params.miss_slots);
}

TEST(ResidencyFills, SlotsAreGivenInTheOrderOfTheMisses) {
  CacheParams params;
  params.l1_entries = 64;
  params.miss_slots = 2;
  Residency residency(params, 1);
  std::vector<Key> filled;
  residency.fill = [&](Key key) { filled.push_back(key); };
  residency.evicted = [](Key) { FAIL(); };
  int joined = 0;
  for (Key key = 0; key < 6; ++key) residency.await(0, key, [&] { ++joined; });
  residency.await(0, 5, [&] { ++joined; });
  EXPECT_EQ(filled, (std::vector<Key>{0, 1}));
  EXPECT_EQ(residency.counters().slot_waits, 4u);
  residency.filled(1);
  residency.filled(0);
  EXPECT_EQ(filled, (std::vector<Key>{0, 1, 2, 3}));
  for (Key key = 2; key < 6; ++key) residency.filled(key);
  EXPECT_EQ(filled, (std::vector<Key>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(joined, 7);
}

// A woken access may need the same context again at once: the context is read only after it was written back.
TEST(ResidencyOfNoEntries, IsWrittenBackBeforeItIsReadAgain) {
  CacheParams params;
  Residency residency(params, 1);
  std::string what;
  residency.fill = [&](Key) { what += "fill "; };
  residency.evicted = [&](Key) { what += "evicted "; };
  residency.await(0, 3, [&] {
    what += "first ";
    EXPECT_FALSE(residency.touch(0, 3));
    residency.await(0, 3, [&] { what += "second "; });
  });
  residency.filled(3);
  residency.filled(3);
  EXPECT_EQ(what, "fill first evicted fill second evicted ");
  EXPECT_FALSE(residency.pending(3));
}

TEST(ResidencyOfNoEntries, WhatIsMadeLeavesAtOnce) {
  Residency residency(CacheParams{}, 1);
  std::vector<Key> evicted;
  residency.evicted = [&](Key key) { evicted.push_back(key); };
  residency.adopt(0, 9);
  EXPECT_EQ(evicted, std::vector<Key>{9});
}

// Accesses that would hit wait, too, in order; another client's accesses pass.
TEST(ResidencyWithoutHitsUnderAMiss, HoldsUpAClientsAccesses) {
  CacheParams params{.l0_entries = 4, .l1_entries = 4, .ways = 4, .miss_slots = 2, .hit_under_miss = false};
  Residency residency(params, 2);
  std::vector<Key> fills, used;
  residency.fill = [&](Key key) { fills.push_back(key); };
  residency.evicted = [](Key) {};
  residency.adopt(0, 1);
  const auto access = [&](std::size_t client, Key key) {
    if (residency.touch(client, key)) return used.push_back(key);
    residency.await(client, key, [&used, key] { used.push_back(key); });
  };
  for (const Key key : {7, 1, 8, 1}) access(0, key);
  access(1, 1);
  EXPECT_EQ(used, std::vector<Key>{1});
  EXPECT_EQ(fills, std::vector<Key>{7});
  residency.filled(7);
  EXPECT_EQ(used, (std::vector<Key>{1, 7, 1}));
  EXPECT_EQ(fills, (std::vector<Key>{7, 8}));
  residency.filled(8);
  EXPECT_EQ(used, (std::vector<Key>{1, 7, 1, 8, 1}));
  access(0, 8);
  EXPECT_EQ(used.back(), 8u);
}

TEST(ResidencyReset, ForgetsWhoWaits) {
  CacheParams params;
  params.miss_slots = 1;
  Residency residency(params, 1);
  std::vector<Key> filled;
  residency.fill = [&](Key key) { filled.push_back(key); };
  residency.evicted = [](Key) {};
  residency.await(0, 1, [] { FAIL(); });
  residency.await(0, 2, [] { FAIL(); });
  residency.clear();
  EXPECT_FALSE(residency.pending(1));
  int woken = 0;
  residency.await(0, 7, [&] { ++woken; });
  EXPECT_EQ(filled, (std::vector<Key>{1, 7}));
  residency.filled(7);
  EXPECT_EQ(woken, 1);
}

}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// Results derived from counters: growth, hit rates, shares, rates.
#include "sim/results/counter_results.h"
#include "model/nic/contexts/cache_params.h"
#include "sim/adapter_counters.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/nic/nic.h"
#include "sim/adapter.h"

namespace rnicsim::sim {
namespace {

using namespace rnicsim::literals;

struct Level {
  Counter hits = 0, misses = 0;
  void describe(CounterVisitor& visit) const {
    visit.counter("hits", hits, "lookups", "");
    visit.counter("misses", misses, "lookups", "");
  }
};
struct Block {
  nic::CacheCounters cache;
  Level level;
  Counter busy = 0, bytes = 0, deepest = 0, narrow_hits = 0;
  void describe(CounterVisitor& visit) const {
    visit.group("cache", cache);
    visit.group("level", level);
    visit.busy("busy", busy, 4, "");
    visit.counter("bytes", bytes, "bytes", "");
    visit.most("deepest", deepest, "bytes", "");
    visit.counter("narrow_hits", narrow_hits, "lookups", "");
  }
};
struct Blocks {
  Block nic;
  void describe(CounterVisitor& visit) const { visit.group("nic", nic); }
};

std::optional<double> value(const std::vector<CounterResult>& results, const std::string& path) {
  const auto found = std::ranges::find(results, path, &CounterResult::path);
  return found == results.end() ? std::nullopt : std::optional(found->value);
}

TEST(CounterResults, EachFollowsFromItsCounters) {
  Blocks before, after;
  before.nic.cache = {.lookups = 100, .l0_hits = 100};
  after.nic.cache = {.lookups = 300, .l0_hits = 200, .l1_hits = 75, .misses = 25};
  after.nic.level = {.hits = 3, .misses = 1};
  before.nic.busy = 1'000'000;
  after.nic.busy = 7'000'000;
  after.nic.bytes = 1250;
  before.nic.deepest = 5;
  after.nic.deepest = 7;
  const auto results = counter_results(CounterList(before), CounterList(after), 2_us);
  EXPECT_EQ(value(results, "nic.cache.lookups"), 200);
  EXPECT_EQ(value(results, "nic.cache.l0_hit_rate"), 0.5);
  EXPECT_EQ(value(results, "nic.cache.l1_hit_rate"), 0.75);
  EXPECT_EQ(value(results, "nic.cache.hit_rate"), 0.875);
  EXPECT_EQ(value(results, "nic.level.hit_rate"), 0.75);
  EXPECT_EQ(value(results, "nic.busy"), 6'000'000);
  EXPECT_EQ(value(results, "nic.busy_share"), 0.75);  // mean share of the four units
  EXPECT_EQ(value(results, "nic.bytes_rate"), 5e9);
  EXPECT_EQ(value(results, "nic.deepest"), 7);
  EXPECT_EQ(value(results, "nic.deepest_rate"), std::nullopt);
  EXPECT_EQ(value(results, "nic.narrow_hit_rate"), std::nullopt);
}

TEST(CounterResults, NobodyLooked) {
  const auto results = counter_results(CounterList(Blocks{}), CounterList(Blocks{}), 0_s);
  ASSERT_TRUE(value(results, "nic.level.hit_rate"));
  for (const auto& result : results) {
    EXPECT_EQ(result.value, 0) << result.path;
    EXPECT_EQ(result.known, result.kind != CounterResult::Kind::hit_rate) << result.path;
    EXPECT_FALSE(result.tells()) << result.path;
  }
}

// Every cache of the NIC, and every unit that counts its busy time.
TEST(CounterResults, NoCacheAndNoUnitIsForgotten) {
  AdapterCounters counters;
  counters.nic.units.transmit_units = 8;
  counters.nic.units.transmit_busy_ps[0] = 8'000'000;
  const auto results = counter_results(CounterList(AdapterCounters{}), CounterList(counters), 1_us);
  for (const char* cache : {"qpc", "cqc", "srqc", "mpt", "mtt"})
    for (const char* rate : {"l0_hit_rate", "l1_hit_rate", "hit_rate"}) {
      const auto path = std::string("nic.contexts.") + cache + "." + rate;
      EXPECT_TRUE(value(results, path)) << path;
    }
  EXPECT_TRUE(value(results, "nic.send_wqes.hit_rate"));
  EXPECT_EQ(value(results, "nic.units.transmit_busy_share"), 1);
  for (const char* share :
       {"nic.units.receive_busy_share", "nic.dma.to_host_busy_share", "nic.dma.to_device_busy_share"})
    EXPECT_TRUE(value(results, share)) << share;
  const auto is_time = [](const auto& result) { return result.unit == "ps" && result.path.ends_with("busy"); };
  EXPECT_GE(std::ranges::count_if(results, is_time), 4);  // the three above, and transmit_busy
  for (const auto& result : results) {
    if (!is_time(result)) continue;
    EXPECT_TRUE(value(results, result.path + "_share")) << result.path;
  }
}

}  // namespace
}  // namespace rnicsim::sim

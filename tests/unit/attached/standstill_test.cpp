// SPDX-License-Identifier: Apache-2.0
// The time keeper's report whether all threads wait without progress; the check for a standstill uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/attached/scripted_programs.h"

namespace rnicsim::sim::test::standstill {
namespace {

using namespace literals;
using testing::IsEmpty;

constexpr std::uint64_t kRing = abi::kMemoryAddress + 64;

// Results of all_wait_in_vain() at each call of the keeper's on_quiet.
class Quiet : public testing::Test {
 protected:
  Quiet() {
    world.keeper.on_quiet = [this] { looks.emplace_back(now(), world.keeper.all_wait_in_vain()); };
  }
  static TimeKeeperParams asking_each(Duration interval) {
    TimeKeeperParams params;
    params.look_when_quiet = interval;
    params.most_unseen = 10_us;
    return params;
  }
  // True: a check was made strictly between the two times.
  bool looked(Duration from, Duration to) const {
    return std::ranges::any_of(looks, [&](const auto& look) { return look.first > from && look.first < to; });
  }
  bool ever_in_vain() const {
    return std::ranges::any_of(looks, [](const auto& look) { return look.second; });
  }
  World world{asking_each(100_us)};
  std::vector<std::pair<Duration, bool>> looks;
  void TearDown() override {
    EXPECT_THAT(world.faults, IsEmpty());
    world.clear();
  }
};

TEST_F(Quiet, PollingAloneIsInVain) {
  world.attach(0, [&](Program& me) -> Script {
    while (me.clock() < 1_ms) co_await me.look(20_ns);
  });
  world.run();
  ASSERT_FALSE(looks.empty());
  EXPECT_TRUE(std::ranges::all_of(looks, [](const auto& look) { return look.second; }));
  for (std::size_t i = 1; i < looks.size(); ++i) EXPECT_GE(looks[i].first - looks[i - 1].first, 100_us);
}

TEST_F(Quiet, NobodyIsAskedWhileThereIsProgress) {
  Process& polls = world.attach(0, [&](Program& me) -> Script {
    while (me.clock() < 1_ms) co_await me.look(20_ns);
  });
  for (Duration at = 50_us; at < 1_ms; at += 50_us)
    world.keeper.threads().at(at, [&] { world.keeper.memory_waits().written(polls, kRing, 64); });
  world.run();
  EXPECT_THAT(looks, IsEmpty());
}

TEST_F(Quiet, AWaitWithAnEndIsNotInVainUntilItRepeats) {
  world.attach(0, [&](Program& me) -> Script {
    while (me.clock() < 3_ms) co_await me.look(20_ns);
  });
  world.attach(0, [&](Program& me) -> Script {
    co_await me.sleep_until(1_ms);
    for (int i = 0; i < 20; ++i) co_await me.sleep_until(me.clock() + 100_us);
  });
  world.run();
  std::erase_if(looks, [](const auto& look) { return look.first > 3_ms; });
  EXPECT_TRUE(looked(0_us, 1_ms));
  EXPECT_TRUE(looked(1200_us, 3_ms));
  for (const auto& [at, in_vain] : looks) EXPECT_EQ(in_vain, at >= 1200_us) << to_string(at);
}

TEST_F(Quiet, WhatActsInBetweenIsNotInVain) {
  world.attach(0, [&](Program& me) -> Script {
    for (int i = 0; i < 20; ++i) {
      co_await me.sleep_until(me.clock() + 300_us);
      co_await me.call(Call::command);
    }
  });
  world.attach(0, [&](Program& me) -> Script {
    while (me.clock() < 6_ms) co_await me.look(20_ns);
  });
  world.run();
  EXPECT_FALSE(looks.empty());
  EXPECT_FALSE(ever_in_vain());
}

TEST_F(Quiet, AnAlarmIsWaitedForUntilItRepeats) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.call(Call::set_timer, 0, std::uint64_t((1_ms).ps));
    while (me.clock() < 900_us) co_await me.look(20_ns);
    co_await me.call(Call::set_timer, 0, std::uint64_t((1_ms).ps), std::uint64_t((100_us).ps));
    while (me.clock() < 2_ms) co_await me.look(20_ns);
    co_await me.call(Call::set_timer, 0, 0);
  });
  world.run();
  EXPECT_TRUE(looked(0_us, 1_ms));
  EXPECT_TRUE(looked(1300_us, 2_ms));
  for (const auto& [at, in_vain] : looks) {
    if (at >= 1_ms && at <= 1300_us) continue;
    EXPECT_EQ(in_vain, at > 1_ms) << to_string(at);
  }
}

}  // namespace
}  // namespace rnicsim::sim::test::standstill

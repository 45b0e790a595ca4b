// SPDX-License-Identifier: Apache-2.0
// One example for each rule of docs/virtual-time.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

#include "tests/unit/attached/time_keeper_story.h"

namespace rnicsim::sim::test::time_keeper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- Order of threads.

TEST_F(TimeKeeperTest, TheLeastClockGoesFirst) {
  for (const Duration start : {3_us, 1_us, 2_us})
    world.attach(0, [&, start](Program& me) -> Script {
      co_await me.sleep_until(start);
      tell("woke", me);
    });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("woke", 1_us), std::pair("woke", 2_us), std::pair("woke", 3_us)));
}

TEST_F(TimeKeeperTest, TiesAreBrokenByHostThenOrderOfAttachingThenThread) {
  const auto two_threads = [](Program& me) -> Script {
    co_await me.new_thread([](Program& child) -> Script { co_await child.sleep_until(5_us); });
    co_await me.call(Call::thread_start, me.value());
    co_await me.sleep_until(5_us);
  };
  // The order of arrival does not matter.
  world.attach(1, 0, {}, two_threads);
  world.attach(0, 2, {}, two_threads);
  world.attach(0, 1, {}, two_threads);
  world.run();
  std::erase_if(world.turns, [](const World::Turn& turn) { return turn.clock != 5_us; });
  using Turn = World::Turn;
  EXPECT_THAT(world.turns, ElementsAre(Turn{5_us, 0, 1, 0}, Turn{5_us, 0, 2, 0}, Turn{5_us, 1, 0, 0}));
}

TEST_F(TimeKeeperTest, TiesWithinAProcessAreBrokenByThread) {
  world.attach(0, [&](Program& me) -> Script {
    for (int i = 0; i < 3; ++i) {
      co_await me.new_thread([&](Program& child) -> Script {
        co_await child.sleep_until(10_us - (std::int64_t(child.index()) * 1_ns));
        co_await child.sleep_until(20_us);
        story.emplace_back("thread", Duration{child.index()});
      });
      co_await me.call(Call::thread_start, me.value());
    }
    co_await me.sleep_until(30_us);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("thread", 1_ps), std::pair("thread", 2_ps), std::pair("thread", 3_ps)));
}

TEST_F(TimeKeeperTest, AnActionGoesBeforeTheThreadsOfItsTime) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.sleep_until(1_us);
    tell("thread", me);
  });
  world.keeper.threads().at(1_us, [&] { story.emplace_back("action", now()); });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("action", 1_us), std::pair("thread", 1_us)));
}

// --- Distance between a thread and the world.

TEST_F(TimeKeeperTest, ACallIsExecutedWhenTheWorldReachesItsCaller) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.act(10_us);
    co_await me.call(Call::command);
    tell("answered", me);
  });
  world.attach(1, [&](Program& me) -> Script {
    co_await me.sleep_until(5_us);
    tell("other", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("other", 5_us), std::pair("answered", 12_us)));
}

TEST_F(TimeKeeperTest, PostedWritesCarryTheirThreadsClock) {
  world.attach(0, [&](Program& me) -> Script {
    for (std::uint32_t i = 0; i < 3; ++i) {
      co_await me.act(1_us);
      me.post(i);
    }
  });
  world.run();
  EXPECT_THAT(world.posted, ElementsAre(std::pair(1_us, 0u), std::pair(2_us, 1u), std::pair(3_us, 2u)));
}

TEST_F(TimeKeeperTest, WhatIsPostedBeforeACallGoesBeforeIt) {
  world.attach(0, [&](Program& me) -> Script {
    me.post(1);
    co_await me.call(Call::port_info);
    EXPECT_EQ(world.posted.size(), 1u);
    co_await me.act(1_us);
    me.post(2);  // and the thread ends
  });
  world.run();
  EXPECT_THAT(world.posted, ElementsAre(std::pair(0_us, 1u), std::pair(1_us, 2u)));
}

TEST_F(TimeKeeperTest, AThreadThatOnlyPostsIs100UsAheadAtMost) {
  Duration ahead;
  world.attach(0, [&](Program& me) -> Script {
    for (int i = 0; i < 1000; ++i) {
      ahead = std::max(ahead, me.clock() - now());
      co_await me.act(1_us);
    }
  });
  world.run();
  EXPECT_EQ(ahead, 99_us + kDetect);
}

// A wake-up takes effect at once, and the waking thread continues at once, but not beyond its former limit.
TEST_F(TimeKeeperTest, WakingOthersDoesNotTakeAThreadFurtherAhead) {
  bool finished = false;
  Duration ahead;
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([&](Program& child) -> Script {
      co_await child.sleep_until(300_us);
      finished = true;
    });
    co_await me.call(Call::thread_start, me.value());
    while (!finished && me.clock() < 1_s) {
      ahead = std::max(ahead, me.clock() - now());
      co_await me.act(1_us);
      co_await me.call(Call::wake_address, kLock, 1);
    }
    tell("finished", me);
  });
  world.run();
  EXPECT_LE(ahead, 100_us);
  ASSERT_EQ(story.size(), 1u);
  EXPECT_LE(story.front().second, 400_us);
}

TEST_F(TimeKeeperTest, AThreadThatOnlyReadsClocksIsAheadByASixteenthOfItsIdleTime) {
  std::vector<Duration> slack;
  // A program of another host may act each 500 ns.
  world.attach(1, [&](Program& me) -> Script {
    while (me.clock() < 400_us) co_await me.sleep_until(me.clock() + 500_ns);
  });
  world.attach(0, [&](Program& me) -> Script {
    for (const bool only_clocks : {false, true}) {
      while (me.clock() < 160_us) co_await me.read_clock(25_ns);
      me.reads_only_clocks(only_clocks);
      Duration ahead;
      for (int i = 0; i < 2000; ++i) {
        co_await me.read_clock(25_ns);
        ahead = std::max(ahead, me.clock() - now());
      }
      slack.push_back(ahead);
    }
  });
  world.run();
  ASSERT_EQ(slack.size(), 2u);
  EXPECT_LE(slack[0], 1_us);
  EXPECT_GE(slack[1], 10_us);
  EXPECT_LE(slack[1], 20_us);
}

TEST_F(TimeKeeperTest, AWaitersClockDoesNotLeaveTheWorld) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([&](Program& child) -> Script {
      co_await child.wait_address(kLock);
      tell("woke", child);
    });
    const auto index = me.value();
    co_await me.call(Call::thread_start, index);
    co_await me.sleep_until(1_us);
    me.process().slot(std::uint32_t(index)).now = INT64_MAX;
    co_await me.call(Call::wake_address, kLock, 1);
    co_await me.sleep_until(8000_s);
  });
  world.run();
  ASSERT_EQ(story.size(), 1u);
  EXPECT_LE(story.front().second, 7201_s);  // one hour until it is woken, and one hour until it continues
}

TEST_F(TimeKeeperTest, AnAlarmComesEachMicrosecondAtMost) {
  int alarms = 0;
  world.attach(0, [&](Program& me) -> Script {
    co_await me.call(Call::set_timer, 0, 1'000'000, 1);
    while (me.clock() < 10_us)
      if (co_await me.sleep_until(10_us) == EINTR) ++alarms;
  });
  world.run();
  EXPECT_GE(alarms, 9);
  EXPECT_LE(alarms, 10);
}

// --- Spinning.

TEST_F(TimeKeeperTest, ASpinnerWakesWhenTheDeviceWritesIntoItsProcess) {
  Process* spins = &world.attach(0, [&](Program& me) -> Script {
    do co_await me.spin();
    while (me.looks_again());
    tell("written", me);
    do co_await me.spin();
    while (me.looks_again());
    tell("interrupted", me);
  });
  Process& other = world.attach(0, [](Program& me) -> Script { co_await me.sleep_until(50_us); });
  device_writes(other, kBuffer, 5_us);
  device_writes(*spins, kBuffer, 10_us);
  world.keeper.threads().at(20_us, [&] { world.keeper.memory_waits().interrupted(*spins); });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("written", 10_us + kDetect), std::pair("interrupted", 20_us + kDetect)));
}

// The proof concerns the memory in the spinner's turn: a device write before the world caught up would be missed
// otherwise.
TEST_F(TimeKeeperTest, ASpinnerSeesWhatWasWrittenBeforeTheWorldReachedIt) {
  Process& process = world.attach(0, [&](Program& me) -> Script {
    co_await me.act(10_us);
    co_await me.call(Call::spin);
    tell("written", me);
  });
  device_writes(process, kBuffer, 5_us);
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("written", 10_us)));
}

Program::Body sets_a_flag(bool& flag, Duration when) {
  return [&flag, when](Program& me) -> Script {
    co_await me.sleep_until(when);
    flag = true;
    co_await me.act(100_ns);
    co_await me.sleep_until(1_ms);
  };
}

TEST_F(TimeKeeperTest, ASpinnerSeesWhatAnotherThreadStored) {
  bool flag = false;
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread(sets_a_flag(flag, 10_us));
    co_await me.call(Call::thread_start, me.value());
    while (!flag) co_await me.call(Call::spin);
    tell("flag", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("flag", 10'100_ns + kDetect)));
}

TEST_F(TimeKeeperTest, ASpinnerSeesWhatAnotherThreadStoredBeforeTheWorldReachedIt) {
  bool flag = false;
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread(sets_a_flag(flag, 10_us));
    co_await me.call(Call::thread_start, me.value());
    co_await me.act(20_us);
    while (!flag) co_await me.call(Call::spin);
    tell("flag", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("flag", 20_us)));
}

TEST_F(TimeKeeperTest, ADeviceWriteWakesASpinnerBeforeAStoreThatIsYetToShow) {
  bool flag = false;
  bool written = false;
  Process& process = world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([&](Program& child) -> Script {
      co_await child.sleep_until(10_us);
      co_await child.act(50_us);
      flag = true;
    });
    co_await me.call(Call::thread_start, me.value());
    while (!written) co_await me.call(Call::spin);
    tell("written", me);
  });
  world.keeper.threads().at(20_us, [&] {
    written = true;
    world.keeper.memory_waits().written(process, kBuffer, 64);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("written", 20_us + kDetect)));
}

TEST_F(TimeKeeperTest, TwoSpinnersDoNotKeepEachOtherAwake) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([](Program& child) -> Script {
      for (;;) co_await child.spin();
    });
    co_await me.call(Call::thread_start, me.value());
    for (;;) co_await me.spin();
  });
  world.run();
  EXPECT_LT(world.turns.size(), 10u);
}

// --- Locks and descriptors.

TEST_F(TimeKeeperTest, WaitersOfAnAddressWakeInOrderOfArrival) {
  world.attach(0, [&](Program& me) -> Script {
    for (const Duration when : {2_us, 1_us, 3_us}) {
      co_await me.new_thread([&, when](Program& child) -> Script {
        co_await child.sleep_until(when);
        co_await child.wait_address(kLock);
        story.emplace_back("woken", Duration{child.index()});
      });
      co_await me.call(Call::thread_start, me.value());
    }
    co_await me.sleep_until(10_us);
    co_await me.call(Call::wake_address, kLock + 8, abi::kForever);  // no waiter
    co_await me.call(Call::wake_address, kLock, 2);
    co_await me.sleep_until(20_us);
    story.emplace_back("again", me.clock());
    co_await me.call(Call::wake_address, kLock, abi::kForever);
    co_await me.sleep_until(30_us);
  });
  world.run();
  // The first two waiters are due at the same time.
  EXPECT_THAT(story, ElementsAre(std::pair("woken", 1_ps), std::pair("woken", 2_ps), std::pair("again", 20_us),
                                 std::pair("woken", 3_ps)));
}

TEST_F(TimeKeeperTest, AWaitForAnAddressEndsAtItsDeadline) {
  world.attach(0, [&](Program& me) -> Script {
    EXPECT_EQ(co_await me.call(Call::wait_address, kLock, 5'000'000), ETIMEDOUT);
    tell("timed out", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("timed out", 5_us)));
}

// A thread runs ahead of the world: a late wake-up finds a wait that has timed out.
TEST_F(TimeKeeperTest, AWakeUpFromAheadDoesNotReachAWaitThatEndsBefore) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([&](Program& child) -> Script {
      EXPECT_EQ(co_await child.call(Call::wait_address, kLock, 5'000'000), ETIMEDOUT);
      tell("timed out", child);
    });
    co_await me.call(Call::thread_start, me.value());
    co_await me.sleep_until(1_us);
    co_await me.act(50_us);
    co_await me.call(Call::wake_address, kLock, 1);
    co_await me.sleep_until(100_us);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("timed out", 5_us)));
}

TEST_F(TimeKeeperTest, AnAlarmEndsASleep) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.call(Call::set_timer, 0, 7'000'000);
    EXPECT_EQ(co_await me.sleep_until(1_s), EINTR);
    tell("alarm", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("alarm", 7_us)));
}

// The alarm is due before the world reaches the sleep, but after the thread has set the timer.
TEST_F(TimeKeeperTest, AnAlarmBeforeASleepIsNotSleptThrough) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.call(Call::set_timer, 0, std::uint64_t((1_us).ps));
    co_await me.act(2_us);
    EXPECT_EQ(co_await me.sleep_until(1_ms), EINTR);
    tell("woke", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("woke", 2_us)));
}

TEST_F(TimeKeeperTest, AWaitForDescriptorsEndsAtItsDeadline) {
  world.attach(0, [&](Program& me) -> Script {
    EXPECT_EQ(co_await me.call(Call::wait_descriptors, 5'000'000), ETIMEDOUT);
    tell("timed out", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("timed out", 5_us)));
}

// --- The real kernel, deaths, forks.

TEST_F(TimeKeeperTest, AThreadInTheRealKernelHoldsNobodyBack) {
  Process& blocked = world.attach(0, [&](Program& me) -> Script {
    co_await me.block();
    tell("back", me);
  });
  world.attach(1, [&](Program& me) -> Script {
    for (int i = 0; i < 100; ++i) {
      if (i == 50) world.program(blocked).come_back();
      co_await me.sleep_until(me.clock() + 1_us);
    }
    tell("other", me);
  });
  world.run();
  // The thread continues when its real call has returned, not when no other thread can run.
  EXPECT_THAT(story, ElementsAre(std::pair("back", 50_us), std::pair("other", 100_us)));
  EXPECT_THAT(world.keeper.disturbances(), ElementsAre("script (pid 0): blocked in the real kernel, a script's call"));
}

TEST_F(TimeKeeperTest, ADeathInItsTurnHoldsNobodyBack) {
  Process& dead = world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([](Program& child) -> Script { co_await child.sleep_until(10_us); });
    co_await me.call(Call::thread_start, me.value());
    co_await me.sleep_until(1_us);
    co_await me.act(10_us);
    me.post(7);  // never reaches the device
    co_await me.die();
  });
  world.attach(1, [&](Program& me) -> Script {
    co_await me.sleep_until(5_us);
    EXPECT_FALSE(dead.alive);
    tell("other", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("other", 5_us)));
  EXPECT_THAT(world.posted, IsEmpty());
}

TEST_F(TimeKeeperTest, AParentHearsOfAChildThatIsKilledWhileItWaits) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.fork([](Program& child) -> Script { co_await child.wait_address(kLock); });
    co_await me.sleep_until(10_us);
    world.kill(*world.keeper.threads().processes().back());
    co_await me.call(Call::wait_child);
    tell("child ended", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("child ended", 10_us + kWakeup)));
}

TEST_F(TimeKeeperTest, AForkedChildBeginsAtItsParentsTime) {
  world.attach(0, [&](Program& me) -> Script {
    co_await me.act(5_us);
    co_await me.fork([&](Program& child) -> Script {
      tell("child", child);
      co_await child.sleep_until(20_us);
    });
    tell("parent", me);
    co_await me.call(Call::wait_child);
    tell("child ended", me);
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("parent", 5_us), std::pair("child", 5_us),
                                 std::pair("child ended", 20_us + kWakeup)));
}

TEST_F(TimeKeeperTest, TheDeadHoldNoDescriptors) {
  const auto open = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open();
  for (int i = 0; i < 5; ++i) world.attach(0, [](Program& me) -> Script { co_await me.sleep_until(1_us); });
  EXPECT_GT(open(), before);
  world.run();
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace rnicsim::sim::test::time_keeper

// SPDX-License-Identifier: Apache-2.0
// Signals and stops: one example for each rule of docs/virtual-time.md.
#include <signal.h>

#include <cerrno>

#include "tests/unit/attached/time_keeper_story.h"

namespace rnicsim::sim::test::time_keeper {
namespace {

using testing::ElementsAre;

class TimeKeeperSignals : public TimeKeeperTest {};

TEST_F(TimeKeeperSignals, ASignalGoesToAThreadThatDoesNotBlockIt) {
  Process& receiver = world.attach(0, [&](Program& me) -> Script {
    co_await me.new_thread([&](Program& child) -> Script {
      EXPECT_EQ(co_await child.sleep_until(1_s), EINTR);
      tell("child", child);
    });
    co_await me.call(Call::thread_start, me.value());
    EXPECT_EQ(co_await me.sleep_until(10_us), 0);
    tell("first", me);
  });
  world.masks[{&receiver, 0}] = {.blocked = set_of(SIGUSR1), .caught = set_of(SIGUSR1)};
  world.keeper.threads().at(5_us, [&] { world.keeper.signals().raise(receiver, {.number = SIGUSR1}); });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("child", 5_us), std::pair("first", 10_us)));
}

TEST_F(TimeKeeperSignals, WhatAllBlockWaitsUntilItIsAskedFor) {
  Process& receiver = world.attach(0, [&](Program& me) -> Script {
    EXPECT_EQ(co_await me.sleep_until(10_us), 0);
    EXPECT_EQ(me.process().slot(0).pending, set_of(SIGUSR1));
    EXPECT_EQ(co_await me.call(Call::await_signal, set_of(SIGUSR2), (12_us).ps), EAGAIN);
    tell("in vain", me);
    EXPECT_EQ(co_await me.call(Call::await_signal, set_of(SIGUSR1), abi::kForever), 0);
    EXPECT_EQ(me.process().slot(0).pending, 0u);
    tell("there", me);
    EXPECT_EQ(co_await me.call(Call::await_signal, set_of(SIGUSR1), abi::kForever), 0);
    tell("came", me);
  });
  world.masks[{&receiver, 0}] = {.blocked = ~SignalSet{0}};
  for (const Duration when : {5_us, 20_us})
    world.keeper.threads().at(when, [&] { world.keeper.signals().raise(receiver, {.number = SIGUSR1}); });
  world.run();
  EXPECT_THAT(story,
              ElementsAre(std::pair("in vain", 12_us), std::pair("there", 12_us), std::pair("came", 20_us + kWakeup)));
}

TEST_F(TimeKeeperSignals, WhatIsIgnoredEndsNoWait) {
  Process& receiver = world.attach(0, [&](Program& me) -> Script {
    EXPECT_EQ(co_await me.sleep_until(10_us), 0);
    tell("slept", me);
  });
  world.masks[{&receiver, 0}] = {.ignored = set_of(SIGUSR1)};
  world.keeper.threads().at(5_us, [&] {
    world.keeper.signals().raise(receiver, {.number = SIGUSR1});
    world.keeper.signals().raise(receiver, {.number = SIGCHLD});  // ignored by default
  });
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("slept", 10_us)));
}

TEST_F(TimeKeeperSignals, AStoppedProcessGetsNoTurnUntilItGoesOn) {
  Process& stopped = world.attach(0, [&](Program& me) -> Script {
    EXPECT_EQ(co_await me.sleep_until(5_us), 0);
    tell("woke", me);
    EXPECT_EQ(co_await me.sleep_until(1_s), EINTR);
    tell("heard", me);
    co_await me.sleep_until(60_us);
  });
  const auto raise = [&](Duration when, int signal) {
    world.keeper.threads().at(
        when, [&, signal] { world.keeper.signals().raise(stopped, {.number = std::uint32_t(signal)}); });
  };
  raise(1_us, SIGSTOP);
  raise(2_us, SIGSTOP);
  raise(9_us, SIGCONT);
  world.masks[{&stopped, 0}] = {.caught = set_of(SIGUSR1)};
  raise(20_us, SIGSTOP);
  raise(30_us, SIGUSR1);  // pending until the process continues
  raise(40_us, SIGCONT);
  world.run();
  EXPECT_THAT(story, ElementsAre(std::pair("woke", 9_us + kWakeup), std::pair("heard", 40_us + kWakeup)));
}

}  // namespace
}  // namespace rnicsim::sim::test::time_keeper

// SPDX-License-Identifier: Apache-2.0
// Alarms run in their order, and running ahead of the kernel's clock has no visible effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/base/kernel.h"

namespace rnicsim {
namespace {

using namespace literals;
using ::testing::ElementsAre;

using Story = std::vector<std::pair<Duration, std::string>>;

class AgendaTest : public ::testing::Test {
 protected:
  ~AgendaTest() override { forget(); }

  // Alarms are ranked in the order of creation.
  Alarm& alarm(
      std::string name, std::function<void()> then = [] {}) {
    told_.push_back([this, name = std::move(name), then = std::move(then)] {
      story.emplace_back(now(), name);
      then();
    });
    const auto index = told_.size() - 1;
    return *alarms_.emplace_back(std::make_unique<Alarm>([this, index] { told_[index](); }));
  }
  Alarm& operator[](std::size_t rank) { return *alarms_[rank]; }
  void thread(std::function<void()> body) {
    sc_core::sc_spawn([body = std::move(body)] {
      body();
      if (auto* agenda = Agenda::current()) agenda->release();
    });
  }
  void tell(std::string what) { story.emplace_back(now(), std::move(what)); }
  void forget() {
    alarms_.clear();
    told_.clear();
    story.clear();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  Story story;

 private:
  std::vector<std::function<void()>> told_;
  std::vector<std::unique_ptr<Alarm>> alarms_;
};

TEST_F(AgendaTest, ByTimeThenByRank) {
  alarm("a").arm(20_ns);
  alarm("b").arm(10_ns);
  alarm("c").arm(10_ns);
  run_on();
  EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "b"), std::pair(10_ns, "c"), std::pair(20_ns, "a")));
}

TEST_F(AgendaTest, WhatIsArmedForThePresentTimeComesInAFurtherRound) {
  int again = 2;
  alarm("a");
  alarm("b", [&] {
    if (again-- > 0) (*this)[0].arm(now()), (*this)[1].arm(now());
  });
  alarm("c");
  for (int rank = 0; rank < 3; ++rank) (*this)[rank].arm(10_ns);
  run_on();
  std::string order;
  for (const auto& [at, name] : story) order += name;
  EXPECT_EQ(order, "abcabab");
}

TEST_F(AgendaTest, ArmReplacesAndArmByKeepsTheSooner) {
  alarm("replaced").arm(10_ns);
  (*this)[0].arm(30_ns);
  alarm("sooner").arm_by(20_ns);
  (*this)[1].arm_by(40_ns);
  alarm("disarmed").arm(10_ns);
  (*this)[2].disarm();
  EXPECT_FALSE((*this)[2].armed());
  run_on();
  EXPECT_THAT(story, ElementsAre(std::pair(20_ns, "sooner"), std::pair(30_ns, "replaced")));
}

TEST_F(AgendaTest, NothingIsServedAtTheEndOfARunOrBehind) {
  for (const bool ahead : {false, true}) {
    alarm("before").arm(10_ns);
    alarm("at").arm(15_ns);
    ahead ? run_until(15_ns) : sc_core::sc_start(to_sc_time(15_ns));
    // SystemC leaves events at the end time to the next run
    EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "before")));
    EXPECT_EQ(now(), 15_ns);
    ahead ? run_until(16_ns) : sc_core::sc_start(to_sc_time(1_ns));
    EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "before"), std::pair(15_ns, "at")));
    EXPECT_EQ(now(), 16_ns);
    forget();
  }
}

TEST_F(AgendaTest, AThreadIsNotPassed) {
  int ticks = 0;
  alarm("tick", [&] {
    if (++ticks < 1000) (*this)[0].arm(now() + 1_ns);
  }).arm(1_ns);
  int seen = 0;
  Sleep sleep;
  thread([&] {
    sleep.until(100_ns);
    EXPECT_EQ(now(), 100_ns);
    seen = ticks;
  });
  run_on();
  EXPECT_EQ(seen, 100);  // alarms run before threads
  EXPECT_EQ(ticks, 1000);
}

TEST_F(AgendaTest, ThreadsGoAheadOfTheKernelUnlessItHasSomethingToDo) {
  for (const bool kernel_is_idle : {true, false}) {
    auto sleeps = std::make_unique<std::array<Sleep, 2>>();
    auto& [sleep, other] = *sleeps;
    alarm("ends it", [&] { sleep.end(now() + 5_ns); }).arm(200_ns);
    thread([&] {
      sleep.until(100_ns);
      tell("slept");
      EXPECT_EQ(Agenda::kernel_now(), kernel_is_idle ? 0_ns : 100_ns);
      sleep.until(1_us);
      tell("ended");
      EXPECT_EQ(Agenda::kernel_now(), kernel_is_idle ? 0_ns : 205_ns);
    });
    thread([&] {
      for (int i = 0; i < 50; ++i) kernel_is_idle ? other.until(now() + 10_ns) : sleep_until(now() + 10_ns);
    });
    run_on();
    EXPECT_THAT(story,
                ElementsAre(std::pair(100_ns, "slept"), std::pair(200_ns, "ends it"), std::pair(205_ns, "ended")));
    sleeps.reset();
    forget();
  }
}

TEST_F(AgendaTest, AtOneTimeThreadsGoOnInTheOrderOfTheirSleepsBehindAlarms) {
  Sleep first, second, third;
  const auto sleeper = [this](Sleep& sleep, std::string name, Duration until, Alarm* arms) {
    thread([this, &sleep, name, until, arms] {
      sleep.until(until);
      tell(name);
      if (arms != nullptr) arms->arm(now());
      sleep.until(300_ns);
      tell(name);
    });
  };
  auto& armed = alarm("armed by first");
  alarm("ends third", [&] { third.end(); }).arm(100_ns);
  sleeper(third, "third", 200_ns, nullptr);
  sleeper(first, "first", 100_ns, &armed);
  sleeper(second, "second", 100_ns, nullptr);
  run_on();
  EXPECT_THAT(story,
              ElementsAre(std::pair(100_ns, "ends third"), std::pair(100_ns, "first"), std::pair(100_ns, "second"),
                          std::pair(100_ns, "third"), std::pair(100_ns, "armed by first"), std::pair(300_ns, "first"),
                          std::pair(300_ns, "second"), std::pair(300_ns, "third")));
}

TEST_F(AgendaTest, AThreadDoesNotGoBeyondTheEndOfARun) {
  Sleep sleep;
  thread([&] {
    for (int i = 1; i <= 10; ++i) {
      sleep.until(i * 10_ns);
      tell(std::to_string(i));
    }
  });
  alarm("a").arm(1_ns);
  run_until(50_ns);
  EXPECT_EQ(story.back(), std::pair(40_ns, std::string("4")));
  EXPECT_EQ(now(), 50_ns);
  run_until(51_ns);
  EXPECT_EQ(story.back(), std::pair(50_ns, std::string("5")));
}

TEST_F(AgendaTest, AnEndThatComesAfterTheSleepEndsNoOther) {
  Sleep sleep;
  alarm("at the last moment", [&] { sleep.end(); }).arm(10_ns);
  alarm("late", [&] { sleep.end(); }).arm(15_ns);
  thread([&] {
    sleep.until(10_ns);
    sleep_until(20_ns);
    sleep.until(30_ns);
    tell("ended");
  });
  run_on();
  EXPECT_EQ(story.back(), std::pair(30_ns, std::string("ended")));
}

TEST_F(AgendaTest, WhoIsWokenGoesOnAtTheAlarmsTimeOrAtTheTimeGiven) {
  sc_core::sc_event event;
  alarm("wakes", [&] { wake(event); }).arm(50_ns);
  alarm("wakes later", [&] { wake(event, now() + 5_ns); }).arm(60_ns);
  alarm("behind").arm(70_ns);
  thread([&] {
    for (int i = 0; i < 2; ++i) {
      sleep_on(event);
      tell("woken");
    }
  });
  run_on();
  EXPECT_THAT(story, ElementsAre(std::pair(50_ns, "wakes"), std::pair(50_ns, "woken"), std::pair(60_ns, "wakes later"),
                                 std::pair(65_ns, "woken"), std::pair(70_ns, "behind")));
}

TEST_F(AgendaTest, YieldsToTheKernelForOneAlarm) {
  // An alarm that is always due would keep a thread of the same time waiting for ever.
  bool ended = false;
  alarm("always", [&] {
    if (!ended) (*this)[0].arm(now());
    Agenda::current()->yield();
  }).arm(10_ns);
  thread([&] {
    sleep_until(10_ns);
    ended = true;
  });
  run_on();
  EXPECT_TRUE(ended);
}

// As from a signal handler: at any time.
TEST_F(AgendaTest, AnInterruptIsHeardBetweenTwoAlarmsAndChangesNoOrder) {
  int looks = 0;
  alarm("a", [&] { Agenda::interrupt(); }).arm(10_ns);
  alarm("b", [&] { EXPECT_EQ(looks, 1); }).arm(10_ns);
  alarm("c").arm(20_ns);
  Agenda::current()->on_interrupt = [&] {
    ++looks;
    EXPECT_EQ(now(), 10_ns);
  };
  run_on();
  EXPECT_EQ(looks, 1);
  EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "a"), std::pair(10_ns, "b"), std::pair(20_ns, "c")));
}

TEST_F(AgendaTest, ARunEndsAtItsLimitOrWhenNothingIsLeft) {
  alarm("a").arm(10_ns);
  alarm("b").arm(50_ns);
  run_on(30_ns);
  EXPECT_EQ(now(), 30_ns);
  EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "a")));
  run_on(1_s);
  EXPECT_EQ(now(), 50_ns);
  EXPECT_THAT(story, ElementsAre(std::pair(10_ns, "a"), std::pair(50_ns, "b")));
}

// Alarms that arm and disarm one another, and threads that sleep and are woken, many at equal times: run twice, ahead
// of the kernel and in step.
TEST_F(AgendaTest, TheSameStoryAheadAndInStep) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Story stories[2];
    for (const bool ahead : {false, true}) {
      constexpr std::size_t kAlarms = 8;
      const std::size_t threads = 1 + seed % 3;
      std::minstd_rand random(seed);
      const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
      const auto delay = [&] { return 1_us * std::int64_t{1 + below(8)}; };
      int left = 400;
      std::vector<std::unique_ptr<Sleep>> sleeps;
      for (std::size_t i = 0; i < threads; ++i) sleeps.push_back(std::make_unique<Sleep>());
      const auto act = [&] {
        if (left-- <= 0) return;
        for (int i = 0; i < 2; ++i) (*this)[below(kAlarms)].arm(now() + delay());
        if (below(4) == 0) (*this)[below(kAlarms)].disarm();
        if (below(3) == 0) sleeps[below(unsigned(threads))]->end(now() + delay());
      };
      for (std::size_t i = 0; i < kAlarms; ++i) alarm(std::to_string(i), act);
      for (std::size_t i = 0; i < threads; ++i)
        thread([&, i] {
          while (left > 0) {
            sleeps[i]->until(now() + 20_us + 1_us * std::int64_t{below(8)});
            tell("thread " + std::to_string(i));
            act();
          }
        });
      (*this)[0].arm(1_ns);
      ahead ? run_on() : sc_core::sc_start();
      stories[ahead] = story;
      sleeps.clear();
      forget();
    }
    ASSERT_EQ(stories[0], stories[1]) << "seed " << seed;
    EXPECT_GT(stories[0].size(), 400u);
  }
}

// Independent groups: each has the same story alone and among others.
TEST_F(AgendaTest, WhatOthersDoChangesNoOrder) {
  constexpr std::size_t kGroups = 4, kAlarms = 4, kThreads = 3;
  struct Group {
    explicit Group(unsigned seed) : random(seed) {}
    unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }
    Duration delay() { return 10_ns * std::int64_t{1 + below(4)}; }
    std::minstd_rand random;
    int left = 300;
    std::vector<Alarm*> alarms;
    std::vector<std::unique_ptr<Sleep>> sleeps;
    Story story;
  };
  const auto run = [this](unsigned seed, const std::vector<std::size_t>& taking_part) {
    std::vector<std::unique_ptr<Group>> groups;
    for (const auto number : taking_part) {
      auto& group = *groups.emplace_back(std::make_unique<Group>(seed * 100 + unsigned(number)));
      const auto act = [&group](const std::string& who) {
        group.story.emplace_back(now(), who);
        if (group.left-- <= 0) return;
        for (int i = 0; i < 2; ++i) group.alarms[group.below(kAlarms)]->arm(now() + group.delay() - 10_ns);
        group.sleeps[group.below(kThreads)]->end(now() + group.delay() - 10_ns);
      };
      for (std::size_t i = 0; i < kThreads; ++i) {
        group.sleeps.push_back(std::make_unique<Sleep>());
        thread([&group, act, i] {
          while (group.left > 0) {
            group.sleeps[i]->until(now() + group.delay());
            act("thread " + std::to_string(i));
          }
        });
      }
      for (std::size_t i = 0; i < kAlarms; ++i)
        group.alarms.push_back(&alarm(std::to_string(i), [act, i] { act(std::to_string(i)); }));
    }
    run_on();
    std::vector<Story> stories;
    for (const auto& group : groups) stories.push_back(group->story);
    groups.clear();
    forget();
    return stories;
  };
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::vector<std::size_t> all;
    for (std::size_t number = 0; number < kGroups; ++number) all.push_back(number);
    const auto together = run(seed, all);
    for (const auto number : all) {
      const auto alone = run(seed, {number});
      EXPECT_GT(alone.front().size(), 300u);
      ASSERT_EQ(alone.front(), together[number]) << "seed " << seed << ", group " << number;
    }
  }
}

}  // namespace
}  // namespace rnicsim

// SPDX-License-Identifier: Apache-2.0
// The PFC watchdog: conditions of a pause storm.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "model/fabric/pause_watchdog.h"

namespace rnicsim::fabric::pause_watchdog_test {
namespace {

using namespace rnicsim::literals;

constexpr PauseWatchdog::Queue kQueue{1, 3};

class Watched : public testing::Test {
 protected:
  Watched() { make({.detection_time = 10_us, .restoration_time = 20_us, .action = "drop"}); }
  void make(const PauseWatchdogParams& params) {
    watchdog = std::make_unique<PauseWatchdog>(params, 2);
    watchdog->waits_since = [this](PauseWatchdog::Queue) { return waits; };
    watchdog->storm_began = [this](PauseWatchdog::Queue queue) {
      EXPECT_EQ(queue.port, kQueue.port);
      EXPECT_EQ(queue.priority, kQueue.priority);
      said += "began at " + to_string(now()) + "; ";
    };
    watchdog->storm_ended = [this](PauseWatchdog::Queue) { said += "ended at " + to_string(now()) + "; "; };
  }
  void at(Duration time, std::function<void()> action) { actions.push(time, std::move(action)); }
  void pause(Duration time, Duration length) {
    at(time, [this, length] { watchdog->paused(kQueue, now() + length); });
  }
  std::string run(double us = 500) {
    sc_core::sc_start(us, sc_core::SC_US);
    return said;
  }

  const bool fresh = (sc_core::sc_get_curr_simcontext()->reset(), true);
  std::unique_ptr<PauseWatchdog> watchdog;
  std::optional<Duration> waits = Duration{};
  std::string said;
  EventQueue<std::function<void()>> actions{[this] {
    std::function<void()> action;
    while (actions.pop_due(action)) action();
  }};
};

TEST_F(Watched, APauseAsLongAsTheDetectionTimeIsAStorm) {
  pause(5_us, 10_us + 1_ps);
  EXPECT_EQ(run(), "began at 15 us; ended at 35.000001 us; ");
  ASSERT_EQ(watchdog->storms().size(), 1u);
  EXPECT_EQ(watchdog->storms()[0].since, 5_us);
  EXPECT_EQ(watchdog->storms()[0].detected, 15_us);
}

TEST_F(Watched, AShorterPauseIsNone) {
  pause(5_us, 10_us);
  pause(16_us, 9_us);
  EXPECT_EQ(run(), "");
}

TEST_F(Watched, PausesThatFollowWithoutAGapAreOne) {
  for (int i = 0; i < 3; ++i) pause(5_us + i * 4_us, 6_us);
  EXPECT_EQ(run(), "began at 15 us; ended at 39 us; ");
}

TEST_F(Watched, AnEndOfThePauseIsAGap) {
  pause(5_us, 100_us);
  pause(14_us, Duration{});
  pause(16_us, 9_us);
  EXPECT_EQ(run(), "");
}

TEST_F(Watched, AFrameThatLeavesIsProgress) {
  pause(5_us, 24_us);
  at(8_us, [this] { watchdog->left(kQueue); });
  EXPECT_EQ(run(), "began at 18 us; ended at 49 us; ");
}

TEST_F(Watched, AnEmptyQueueIsInNoStorm) {
  waits = std::nullopt;
  pause(5_us, 100_us);
  at(50_us, [this] { waits = now(); });
  EXPECT_EQ(run(), "began at 60 us; ended at 125 us; ");
}

TEST_F(Watched, AStormLastsAsLongAsPausesCome) {
  for (int i = 0; i < 10; ++i) pause(5_us + i * 25_us, 15_us);
  EXPECT_EQ(run(), "began at 15 us; ended at 265 us; ");
  EXPECT_FALSE(watchdog->in_storm(kQueue));
}

TEST_F(Watched, AnEndOfThePauseEndsTheStormEarlier) {
  pause(5_us, 300_us);
  pause(40_us, Duration{});
  EXPECT_EQ(run(), "began at 15 us; ended at 60 us; ");
  // The watchdog's earlier check changes nothing.
  pause(now() + 1_us, 5_us);
  EXPECT_EQ(run(), "began at 15 us; ended at 60 us; ");
}

TEST_F(Watched, WithoutADetectionTimeNothingIsWatched) {
  make({});
  pause(5_us, 400_us);
  EXPECT_EQ(run(), "");
  EXPECT_FALSE(watchdog->watches());
}

}  // namespace
}  // namespace rnicsim::fabric::pause_watchdog_test

// SPDX-License-Identifier: Apache-2.0
// Contention for the processors of this machine, found in the scheduler's statistics.
#include "sim/attached/native/contention.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/unit/attached/scheduler_statistics.h"

namespace rnicsim::sim {
namespace {

using namespace std::chrono_literals;

class ContentionTest : public testing::Test {
 protected:
  // A measurement: the thread waits busily for 20 ms, and `waited` of that for a processor.
  void measure(std::chrono::nanoseconds waited) {
    contention_.apart(now_);
    statistics_.waited(waited_ += waited);
    now_ += 20ms;
    contention_.apart(now_);
  }

  SchedulerStatistics statistics_;
  Contention contention_{statistics_.path().c_str()};
  Contention::Time now_{1h};
  std::chrono::nanoseconds waited_{};
};

TEST_F(ContentionTest, WaitAboveATenthOfTheTimeIsContention) {
  measure(2ms);
  EXPECT_FALSE(contention_.present());
  measure(2ms + 1ns);
  EXPECT_TRUE(contention_.present());
}

TEST_F(ContentionTest, WaitBeforeTheMeasurementDoesNotCount) {
  waited_ = 1s;
  statistics_.waited(waited_);
  measure(0ns);
  EXPECT_FALSE(contention_.present());
}

TEST_F(ContentionTest, EndsAfterASecondAndIsMeasuredAgain) {
  measure(20ms);
  contention_.shared(now_ += 999ms);
  EXPECT_TRUE(contention_.present());
  contention_.shared(now_ += 1ms);
  EXPECT_FALSE(contention_.present());
  measure(0ns);
  EXPECT_FALSE(contention_.present());
  measure(10ms);
  EXPECT_TRUE(contention_.present());
}

// Threads that share a processor wait for each other.
TEST_F(ContentionTest, TimeOfASharedProcessorIsNotMeasured) {
  contention_.apart(now_);
  contention_.shared(now_ += 1ms);
  statistics_.waited(waited_ += 15ms);
  contention_.apart(now_ += 19ms);
  EXPECT_FALSE(contention_.present());
  contention_.apart(now_ += 20ms);
  EXPECT_FALSE(contention_.present());
}

TEST_F(ContentionTest, UnreadableStatisticsAreNoContention) {
  for (const char* text : {"", "1000", "1000 ", "one two three", "99999999999999999999999 1 1"}) {
    measure(0ns);
    statistics_.write(text);
    contention_.apart(now_ += 20ms);
    EXPECT_FALSE(contention_.present()) << text;
  }
  Contention without("/proc/self/no/such/file");
  without.apart(now_);
  without.apart(now_ += 20ms);
  EXPECT_FALSE(without.present());
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// The guard reports an access that does not end, repeatedly, and nothing else.
#include "sim/attached/native/stall_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace rnicsim::sim {
namespace {

using namespace std::chrono_literals;

class StallGuardTest : public testing::Test {
 protected:
  void stalled(int process, int calls) {
    const std::lock_guard held(lock_);
    processes_.push_back(process);
    calls_.push_back(calls);
    told_.notify_all();
  }
  void await(std::size_t calls) {
    std::unique_lock held(lock_);
    told_.wait(held, [&] { return calls_.size() >= calls; });
  }

  std::mutex lock_;
  std::condition_variable told_;
  std::vector<int> processes_;
  std::vector<int> calls_;
};

TEST_F(StallGuardTest, AnAccessThatDoesNotEnd) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  StallGuard guard(1ms, [&](int process, int calls) {
    stalled(process, calls);
    if (calls == 3) ::close(pipe[1]);
  });
  {
    const StallGuard::Access access(&guard, 7);
    char byte = 0;
    EXPECT_EQ(::read(pipe[0], &byte, 1), 0);
  }
  ::close(pipe[0]);
  const std::lock_guard held(lock_);
  EXPECT_EQ(processes_[0], 7);
  EXPECT_EQ(calls_[0], 1);
  EXPECT_EQ(calls_[1], 2);
  EXPECT_EQ(calls_[2], 3);
}

// An access that runs, on a busy machine: it takes long, but does not wait.
TEST_F(StallGuardTest, AnAccessThatRuns) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = 1ms;
  {
    StallGuard guard(kPatience, [&](int process, int calls) { stalled(process, calls); });
    const StallGuard::Access access(&guard, 7);
    for (const auto end = Clock::now() + 100 * kPatience; Clock::now() < end;) continue;
  }
  EXPECT_TRUE(calls_.empty());
}

// For example, pages that come from a disk one after the other. A wait that the machine itself delayed may be reported.
TEST_F(StallGuardTest, AnAccessOfManyWaits) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = 5ms;
  Clock::duration longest{};
  {
    StallGuard guard(kPatience, [&](int process, int calls) { stalled(process, calls); });
    const StallGuard::Access access(&guard, 7);
    const auto end = Clock::now() + 10 * kPatience;
    for (auto begin = Clock::now(); begin < end; begin = Clock::now()) {
      std::this_thread::sleep_for(100us);
      longest = std::max(longest, Clock::now() - begin);
    }
  }
  EXPECT_TRUE(calls_.empty() || longest >= kPatience);
}

// Short accesses in a row: each check finds an access in progress, but a different one. An access that the machine
// itself delayed may be reported.
TEST_F(StallGuardTest, ShortAccesses) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = 5ms;
  Clock::duration longest{};
  {
    StallGuard guard(kPatience, [&](int process, int calls) { stalled(process, calls); });
    const auto end = Clock::now() + 10 * kPatience;
    for (auto begin = Clock::now(); begin < end; begin = Clock::now()) {
      {
        const StallGuard::Access access(&guard, 7);
        std::this_thread::sleep_for(100us);
      }
      longest = std::max(longest, Clock::now() - begin);
    }
  }
  EXPECT_TRUE(calls_.empty() || longest >= kPatience);  // the guard's thread has ended
}

TEST_F(StallGuardTest, NoneUnderWay) {
  StallGuard guard(1ms, [&](int process, int calls) { stalled(process, calls); });
  std::size_t told = 0;
  {
    const StallGuard::Access access(&guard, 8);
    await(1);
  }
  {
    const std::lock_guard held(lock_);
    EXPECT_EQ(processes_[0], 8);
    EXPECT_EQ(calls_[0], 1);
    told = calls_.size();
  }
  std::this_thread::sleep_for(20ms);
  const std::lock_guard held(lock_);
  EXPECT_LE(calls_.size(), told + 1);  // one report may have been in progress
}

TEST_F(StallGuardTest, NobodyWatches) { const StallGuard::Access access(nullptr, 7); }

}  // namespace
}  // namespace rnicsim::sim

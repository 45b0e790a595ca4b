// SPDX-License-Identifier: Apache-2.0
// Signals that end a run, and signals that end the process.
#include "sim/watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace rnicsim::sim {
namespace {

using std::chrono::milliseconds;

// Sends itself the signal after each pause. The exit status says whether the run was asked to end.
[[noreturn]] void be_told(int signal, std::initializer_list<milliseconds> pauses) {
  const Watch watch(Limits{});
  for (const auto pause : pauses) {
    std::this_thread::sleep_for(pause);
    ::raise(signal);
  }
  const auto end = watch.end();
  std::_Exit(end ? end->status : 0);
}

TEST(WatchTest, TheFirstSignalEndsTheRun) {
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(be_told(signal, {milliseconds(0)}), testing::ExitedWithCode(128 + signal), "");
}

TEST(WatchTest, OthersOfTheSameSecondAreTheSameWish) {
  EXPECT_EXIT(be_told(SIGTERM, {milliseconds(0), milliseconds(0), milliseconds(5), milliseconds(100)}),
              testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(WatchTest, ALaterSignalEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(be_told(signal, {milliseconds(0), milliseconds(1100)}), testing::KilledBySignal(signal), "");
}

}  // namespace
}  // namespace rnicsim::sim

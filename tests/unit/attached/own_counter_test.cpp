// SPDX-License-Identifier: Apache-2.0
// The trap of the time-stamp counter in the simulator's own thread.
#include "sim/attached/native/own_counter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <chrono>
#include <thread>

namespace rnicsim::sim {
namespace {

int counter_mode() {
  int mode = 0;
  ::prctl(PR_GET_TSC, &mode);
  return mode;
}

TEST(OwnCounterTest, TrapLivesAsLongAsTheObject) {
  {
    const OwnCounter trapped;
    EXPECT_EQ(counter_mode(), PR_TSC_SIGSEGV);
  }
  EXPECT_EQ(counter_mode(), PR_TSC_ENABLE);
}

TEST(OwnCounterTest, ClocksOfTheCLibraryDoNotReadTheCounter) {
  const OwnCounter trapped;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_GE(std::chrono::steady_clock::now(), before);
  EXPECT_GT(std::chrono::system_clock::now().time_since_epoch().count(), 0);
  timespec time{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
  EXPECT_GT(::time(nullptr), 0);
  EXPECT_EQ(counter_mode(), PR_TSC_SIGSEGV);
}

TEST(OwnCounterTest, ReadOfTheCounterEndsTheTrapOfItsThread) {
  const OwnCounter trapped;
  int mode_of_other = 0;
  std::thread([&] {
    EXPECT_GT(__rdtsc(), 0u);
    mode_of_other = counter_mode();
  }).join();
  EXPECT_EQ(mode_of_other, PR_TSC_ENABLE);
  EXPECT_EQ(counter_mode(), PR_TSC_SIGSEGV);
  unsigned processor;
  EXPECT_GT(__rdtscp(&processor), 0u);
  EXPECT_EQ(counter_mode(), PR_TSC_ENABLE);
}

TEST(OwnCounterTest, ChildProcessHasNoTrap) {
  const OwnCounter trapped;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(counter_mode());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), PR_TSC_ENABLE);
}

TEST(OwnCounterDeathTest, OtherFaultsStayFatal) {
  const OwnCounter trapped;
  EXPECT_DEATH(*static_cast<volatile int*>(nullptr) = 0, "");
  EXPECT_DEATH(::raise(SIGSEGV), "");
}

}  // namespace
}  // namespace rnicsim::sim

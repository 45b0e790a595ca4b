// SPDX-License-Identifier: Apache-2.0
// State of a thread from /proc, whatever name its process has.
#include "sim/attached/native/native_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace rnicsim::sim {
namespace {

class NativeThreadTest : public testing::Test {
 protected:
  // A child with a misleading name, which waits.
  NativeThreadTest() : child_(::fork()) {
    if (child_ != 0) return;
    ::prctl(PR_SET_NAME, "a) R 1 (b) S 2");
    for (;;) ::pause();
  }
  ~NativeThreadTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  const pid_t child_;
};

TEST_F(NativeThreadTest, SleepsInACall) {
  const NativeThread thread(child_, std::uint32_t(child_));
  while (!thread.sleeps() || thread.system_call() != "system call 34") ::usleep(1000);
  EXPECT_FALSE(NativeThread(::getpid(), std::uint32_t(::getpid())).sleeps());
}

TEST_F(NativeThreadTest, IsStopped) {
  const NativeThread thread(child_, std::uint32_t(child_));
  EXPECT_FALSE(thread.is_stopped());
  ::kill(child_, SIGSTOP);
  while (!thread.is_stopped()) ::usleep(1000);
  EXPECT_FALSE(thread.sleeps());
  ::kill(child_, SIGCONT);
  while (thread.is_stopped()) ::usleep(1000);
}

TEST_F(NativeThreadTest, Parent) {
  EXPECT_EQ(parent_of(child_), ::getpid());
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_EQ(parent_of(-1), 0);
}

TEST(ProcessorTimeTest, IsOfThatProcess) {
  const auto before = processor_time_of(::getpid());
  while (processor_time_of(::getpid()) < before + std::chrono::milliseconds(10)) continue;
}

}  // namespace
}  // namespace rnicsim::sim

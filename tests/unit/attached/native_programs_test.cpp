// SPDX-License-Identifier: Apache-2.0
// How a turn of a real process ends.
#include "sim/attached/native/native_programs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "sim/attached/native/native_thread.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
using namespace std::chrono_literals;

// A child that sleeps and holds the turn.
class NativeProgramsTest : public testing::Test {
 protected:
  NativeProgramsTest() : process_({.pid = start(told_), .program = "sleeper"}, Descriptor{}) {
    thread_.process = &process_;
    slot().tid = std::uint32_t(process_.identity().pid);
    programs_.give_turn(thread_);
  }
  ~NativeProgramsTest() override {
    process_.kill();
    waitpid(process_.identity().pid, nullptr, 0);
    close(told_[0]);
    close(told_[1]);
  }

  static pid_t start(int (&told)[2]) {
    EXPECT_EQ(pipe(told), 0);
    const pid_t child = fork();
    char byte;
    if (child != 0) {
      EXPECT_EQ(read(told[0], &byte, 1), 1);
      return child;
    }
    static int tell = told[1];
    signal(abi::kLookSignal, [](int) { (void)!write(tell, "look ", 5); });
    (void)!write(tell, "!", 1);
    for (;;) {
      pause();
      (void)!write(tell, "on ", 3);
    }
  }
  ThreadSlot& slot() { return process_.slot(0); }
  void end_process() {
    process_.kill();
    while (!process_.has_exited()) poll(nullptr, 0, 1);
  }

  int told_[2];
  NativePrograms programs_;
  Process process_;
  Thread thread_;
};

TEST_F(NativeProgramsTest, ADeathInTheTurn) {
  const TurnEnd end = programs_.await_turn_end(thread_, [&](std::chrono::microseconds) {
    end_process();
    return false;
  });
  EXPECT_EQ(end, TurnEnd::died);
}

// The child's last turn counts although its process has ended before the check.
TEST_F(NativeProgramsTest, ADeathAfterTheTurnWasGivenBack) {
  const TurnEnd end = programs_.await_turn_end(thread_, [&](std::chrono::microseconds) {
    slot().turn = ThreadSlot::kKernel;
    end_process();
    return false;
  });
  EXPECT_EQ(end, TurnEnd::given_back);
}

TEST_F(NativeProgramsTest, WhoeverWaitsForItsOutputToBeTakenIsNotBlocked) {
  constexpr auto kWriting = 30ms;
  std::chrono::microseconds last{};
  const TurnEnd end = programs_.await_turn_end(thread_, [&](std::chrono::microseconds waited) {
    last = waited;
    return waited < kWriting;
  });
  EXPECT_EQ(end, TurnEnd::blocked);
  EXPECT_GE(last, kWriting);
}

// All queued signals would arrive when the thread continues, each with a frame on the thread's stack.
TEST_F(NativeProgramsTest, AStoppedThreadIsAskedOnce) {
  const NativeThread thread(process_.identity().pid, slot().tid);
  while (thread.system_call() != fmt::format("system call {}", SYS_pause)) usleep(100);
  kill(process_.identity().pid, SIGSTOP);
  waitpid(process_.identity().pid, nullptr, WUNTRACED);
  programs_.await_turn_end(thread_, [&](std::chrono::microseconds waited) {
    if (waited > 200ms) slot().turn = ThreadSlot::kKernel;
    return true;
  });
  kill(process_.identity().pid, SIGCONT);
  std::string told;
  for (char byte; !told.ends_with("on ") && read(told_[0], &byte, 1) == 1;) told += byte;
  EXPECT_EQ(told, "look on ");
}

TEST_F(NativeProgramsTest, AThreadThatStaysIsWaitedForWithAnEnd) {
  thread_.index = 1;
  process_.slot(1).tid = slot().tid;
  programs_.await_thread_end(thread_);
  EXPECT_FALSE(process_.has_exited());
}

}  // namespace
}  // namespace rnicsim::sim

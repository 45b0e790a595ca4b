// SPDX-License-Identifier: Apache-2.0
// Processors on which the simulator and its programs run.
#include "sim/attached/native/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "tests/unit/attached/scheduler_statistics.h"

namespace rnicsim::sim {
namespace {

using namespace std::chrono_literals;

TEST(CompanionshipTest, ThreadsThatHandOverToEachOtherComeTogether) {
  Companionship companionship;
  for (int i = 0; i < 63; ++i) companionship.turn_of_another();
  EXPECT_FALSE(companionship.together());
  companionship.turn_of_another();
  EXPECT_TRUE(companionship.together());
}

TEST(CompanionshipTest, OneThreadAloneStaysApart) {
  Companionship companionship;
  for (int i = 0; i < 100'000; ++i) {
    companionship.turn_of_the_same(10us);
    if (i % 10 == 0) companionship.turn_of_another();
  }
  EXPECT_FALSE(companionship.together());
}

// The simulator occupies a processor all the time; the wait for the simulator occupies another.
TEST(CompanionshipTest, LongTurnsOfOneThreadBringItHere) {
  Companionship companionship;
  for (int i = 0; i < 1'000; ++i) companionship.turn_of_the_same(50us);
  EXPECT_TRUE(companionship.together());
  for (int i = 0; i < 1'000; ++i) companionship.turn_of_the_same(5us);
  EXPECT_FALSE(companionship.together());
}

TEST(CompanionshipTest, LooksDriveThemApart) {
  Companionship companionship;
  for (int i = 0; i < 1'000; ++i) companionship.turn_of_another();
  for (int i = 0; i < 15; ++i) companionship.looked();
  EXPECT_TRUE(companionship.together());
  companionship.looked();
  EXPECT_FALSE(companionship.together());
}

// A few looks per turn are worth the common processor.
TEST(CompanionshipTest, AFewLooksDoNot) {
  Companionship companionship;
  for (int i = 0; i < 10'000; ++i) {
    companionship.turn_of_another();
    if (i % 20 == 0) companionship.looked();
  }
  EXPECT_TRUE(companionship.together());
}

class ProcessorsTest : public testing::Test {
 protected:
  ProcessorsTest() {
    sched_getaffinity(0, sizeof all_, &all_);
    if (program_ == 0)
      for (;;) pause();
    another_turn(1);
  }
  ~ProcessorsTest() override {
    kill(program_, SIGKILL);
    waitpid(program_, nullptr, 0);
    sched_setaffinity(0, sizeof all_, &all_);
  }
  void SetUp() override {
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "this machine has one processor";
  }

  void another_turn(int times) {
    for (int i = 0; i < times; ++i) {
      processors_.place(program_);
      processors_.turn_began(true, std::chrono::steady_clock::now());
    }
    processors_.place(program_);
  }
  static cpu_set_t of(pid_t process) {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(process, sizeof set, &set), 0);
    return set;
  }

  cpu_set_t all_;
  const pid_t program_ = fork();
  SchedulerStatistics statistics_;
  Processors processors_{Contention(statistics_.path().c_str())};
};

TEST_F(ProcessorsTest, AllAreOnTheSimulatorsProcessorAndPartAgain) {
  another_turn(64);
  EXPECT_FALSE(processors_.apart());
  const cpu_set_t own = of(0), program = of(program_);
  EXPECT_EQ(CPU_COUNT(&own), 1);
  EXPECT_TRUE(CPU_ISSET(sched_getcpu(), &own));
  EXPECT_TRUE(CPU_EQUAL(&own, &program));
  for (int i = 0; i < 16; ++i) processors_.looked();
  processors_.place(program_);
  EXPECT_TRUE(processors_.apart());
  for (const pid_t process : {0, program_}) {
    const cpu_set_t set = of(process);
    EXPECT_TRUE(CPU_EQUAL(&set, &all_));
  }
}

// A busy wait would take a processor that another program needs.
TEST_F(ProcessorsTest, AllShareAProcessorWhileOtherProgramsNeedTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  processors_.turn_began(false, start);
  EXPECT_TRUE(processors_.apart());
  statistics_.waited(10ms);
  processors_.turn_began(false, start + 20ms);
  EXPECT_FALSE(processors_.apart());
  processors_.place(program_);
  const cpu_set_t own = of(0), program = of(program_);
  EXPECT_EQ(CPU_COUNT(&own), 1);
  EXPECT_TRUE(CPU_EQUAL(&own, &program));
  processors_.turn_began(false, start + 1020ms);
  EXPECT_TRUE(processors_.apart());
}

TEST_F(ProcessorsTest, TheSimulatorMovesNowAndThenAndTheProgramsFollow) {
  another_turn(64);
  usleep(20'000);
  processors_.before_sleep();
  const cpu_set_t floating = of(0);
  EXPECT_TRUE(CPU_EQUAL(&floating, &all_));
  // The real kernel decides where the simulator wakes: here, on another processor.
  cpu_set_t elsewhere = all_;
  CPU_CLR(sched_getcpu(), &elsewhere);
  sched_setaffinity(0, sizeof elsewhere, &elsewhere);
  const int came_to = sched_getcpu();
  processors_.after_sleep();
  processors_.place(program_);
  for (const pid_t process : {0, program_}) {
    const cpu_set_t set = of(process);
    EXPECT_EQ(CPU_COUNT(&set), 1);
    EXPECT_TRUE(CPU_ISSET(came_to, &set));
  }
}

TEST_F(ProcessorsTest, WhoAskedForProcessorsIsThereForATurn) {
  for (const int turns : {1, 64}) {
    another_turn(turns);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &all_)) continue;
      const cpu_set_t before = of(program_);
      abi::ProcessorSet asked;
      asked.bits[processor / 64] = 1ull << processor % 64;
      processors_.place_within(program_, asked);
      const cpu_set_t there = of(program_);
      EXPECT_EQ(CPU_COUNT(&there), 1);
      EXPECT_TRUE(CPU_ISSET(processor, &there));
      processors_.turn_began(false, std::chrono::steady_clock::now());
      processors_.place(program_);
      const cpu_set_t after = of(program_);
      EXPECT_TRUE(CPU_EQUAL(&after, &before));
    }
  }
}

// The user's nice value holds for the simulator, too.
TEST(ProcessorsPriority, NiceValueIsKept) {
  const pid_t child = fork();
  if (child == 0) {
    setpriority(PRIO_PROCESS, 0, 7);
    const Processors processors;
    _exit(getpriority(PRIO_PROCESS, 0));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(ProcessorsTest, ItStaysAWhile) {
  another_turn(64);
  processors_.before_sleep();
  const cpu_set_t own = of(0);
  EXPECT_EQ(CPU_COUNT(&own), 1);
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Fixture: scripted programs under the time keeper, and a log of their execution.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/attached/scripted_programs.h"

namespace rnicsim::sim::test::time_keeper {

using namespace literals;

inline constexpr Duration kDetect = 80_ns;
inline constexpr Duration kWakeup = 3_us;
inline constexpr std::uint64_t kRing = abi::kMemoryAddress + 64;
inline constexpr std::uint64_t kBuffer = 0x7000'0000;
inline constexpr std::uint64_t kLock = 0x1000;

class TimeKeeperTest : public testing::Test {
 protected:
  // Entries that scripts log, with the thread's clock, in order of execution.
  std::vector<std::pair<std::string, Duration>> story;
  void tell(const char* what, const Program& me) { story.emplace_back(what, me.clock()); }
  void device_writes(Process& process, std::uint64_t address, Duration when) {
    world.keeper.threads().at(when,
                              [this, &process, address] { world.keeper.memory_waits().written(process, address, 64); });
  }
  void TearDown() override {
    EXPECT_THAT(world.faults, testing::IsEmpty());
    world.clear();
  }
  World world;
};

}  // namespace rnicsim::sim::test::time_keeper

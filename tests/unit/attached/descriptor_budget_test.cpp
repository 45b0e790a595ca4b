// SPDX-License-Identifier: Apache-2.0
// A descriptor is always left for descriptors in transit.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "sim/attached/descriptor_budget.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {
namespace {

std::size_t open_now() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::size_t(std::distance(begin(descriptors), end(descriptors)));
}
std::vector<Descriptor> opened(std::size_t count) {
  std::vector<Descriptor> descriptors;
  for (std::size_t i = 0; i < count; ++i) descriptors.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return descriptors;
}

TEST(DescriptorBudget, LeavesWhatPassesThrough) {
  constexpr std::size_t kRoom = 50;
  const std::size_t before = open_now();
  DescriptorBudget budget(before + kRoom + DescriptorBudget::kForPassing);
  EXPECT_FALSE(budget.take_for_process(kRoom + 2));  // counting open descriptors takes one
  EXPECT_TRUE(budget.refused());
  EXPECT_TRUE(budget.take_for_process(kRoom - 2));
  EXPECT_EQ(budget.end_for_waits(), int(before + kRoom));
}

TEST(DescriptorBudget, KnowsWhetherItEverRefused) {
  DescriptorBudget budget(open_now() + 20 + DescriptorBudget::kForPassing);
  EXPECT_TRUE(budget.take_for_process(1));
  EXPECT_FALSE(budget.refused());
  EXPECT_FALSE(budget.take_for_object(1));
  EXPECT_TRUE(budget.refused());
}

TEST(DescriptorBudget, ObjectsLeaveRoomForProcesses) {
  const std::size_t before = open_now();
  DescriptorBudget budget(before + 10 + DescriptorBudget::kForPassing + DescriptorBudget::kForProcesses);
  const auto some = opened(8);
  EXPECT_TRUE(budget.take_for_object(1));
  const auto more = opened(8);
  EXPECT_FALSE(budget.take_for_object(8));
  EXPECT_TRUE(budget.take_for_process(8));
}

TEST(DescriptorBudget, WhatWasClosedCanBeTakenAgain) {
  const std::size_t before = open_now();
  DescriptorBudget budget(before + 20 + DescriptorBudget::kForPassing);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(budget.take_for_process(16)) << i;
    const auto gone_at_once = opened(16);
  }
  EXPECT_NE(budget.shortage().find(" are open; raise the hard limit"), std::string::npos);
}

TEST(DescriptorBudget, AnyLimitIsPossible) {
  DescriptorBudget budget(10);
  EXPECT_FALSE(budget.take_for_process(1));
  EXPECT_FALSE(budget.take_for_object(1));
  EXPECT_EQ(budget.end_for_waits(), 0);
}

}  // namespace
}  // namespace rnicsim::sim

// SPDX-License-Identifier: Apache-2.0
// Memory of a recorded run: the time of stores that wait for a device.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "sim/rerun/recorded_memory.h"

namespace rnicsim::sim::rerun {
namespace {

using Bytes = std::array<std::byte, 8>;

Bytes bytes_of(int value) {
  Bytes bytes;
  bytes.fill(std::byte(value));
  return bytes;
}

class RecordedMemoryTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kAddress = 0x10ff8;  // the last word of a page

  Bytes read(std::uint64_t address = kAddress) {
    Bytes bytes{};
    EXPECT_TRUE(memory_.read(address, bytes));
    return bytes;
  }

  RecordedMemory memory_;
  // Stores of one recording lie one behind the other.
  const std::array<Bytes, 3> stored_{bytes_of(1), bytes_of(2), bytes_of(3)};
};

TEST_F(RecordedMemoryTest, MemoryThatNobodyStoredIsZeros) { EXPECT_EQ(read(), bytes_of(0)); }

TEST_F(RecordedMemoryTest, AStoreCrossesPages) {
  std::array<std::byte, 16> both;
  both.fill(std::byte(7));
  memory_.store(kAddress, both);
  EXPECT_EQ(read(kAddress + 8), bytes_of(7));
}

TEST_F(RecordedMemoryTest, AStoreWaitsUntilADeviceHasReadTheOneBefore) {
  memory_.name_word(kAddress);
  memory_.store(kAddress, stored_[0]);
  memory_.store_after_access(kAddress, stored_[1]);
  memory_.store_after_access(kAddress, stored_[2]);
  EXPECT_EQ(read(), stored_[0]);
  EXPECT_EQ(read(), stored_[1]);
  EXPECT_EQ(read(), stored_[2]);
  EXPECT_EQ(read(), stored_[2]);
}

TEST_F(RecordedMemoryTest, AStoreDoesNotWaitForWhatWasReadAlready) {
  memory_.name_word(kAddress);
  memory_.store(kAddress, stored_[0]);
  read();
  memory_.store_after_access(kAddress, stored_[1]);
  EXPECT_EQ(read(), stored_[1]);
}

TEST_F(RecordedMemoryTest, ADevicesWriteIsAnAccess) {
  memory_.name_word(kAddress);
  memory_.store_after_access(kAddress, stored_[1]);
  EXPECT_TRUE(memory_.write(kAddress, stored_[0]));
  EXPECT_EQ(read(), stored_[1]);
}

TEST_F(RecordedMemoryTest, AnAccessBesideTheWordIsNone) {
  memory_.name_word(kAddress);
  memory_.store_after_access(kAddress, stored_[1]);
  read(kAddress - 8);
  read(kAddress + 8);
  Bytes bytes{};
  EXPECT_TRUE(memory_.read(kAddress, bytes));
  EXPECT_EQ(bytes, bytes_of(0));
}

TEST_F(RecordedMemoryTest, AtTheLatestTimeStoresAreDoneInTheirOrder) {
  memory_.name_word(kAddress);
  for (const auto& bytes : stored_) memory_.store_after_access(kAddress, bytes);
  memory_.wait_no_longer(kAddress, stored_[1]);
  EXPECT_EQ(read(), stored_[1]);
  EXPECT_EQ(read(), stored_[2]);
}

TEST_F(RecordedMemoryTest, UnmappedPagesFailUntilTheyArePinned) {
  memory_.store(kAddress, stored_[0]);
  memory_.remove(kAddress, 1);
  Bytes bytes{};
  EXPECT_FALSE(memory_.read(kAddress, bytes));
  EXPECT_FALSE(memory_.write(kAddress, bytes));
  EXPECT_TRUE(memory_.read(kAddress + 8, bytes));
  EXPECT_EQ(memory_.admit(kAddress, 8, true), 0);
  EXPECT_EQ(read(), stored_[0]);
}

}  // namespace
}  // namespace rnicsim::sim::rerun

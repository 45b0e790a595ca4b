// SPDX-License-Identifier: Apache-2.0
// A guest's memory: mapped ranges, access rights, and a file that its owner truncates.
#include "sim/guest/transactor/guest_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "sim/guest/transactor/shared_copy.h"

namespace rnicsim::sim {
namespace {

using Answer = GuestMemory::Answer;
constexpr GuestMemory::Rights kAll{.read = true, .write = true};
constexpr std::uint64_t kPage = 4096;

class Memory : public ::testing::Test {
 protected:
  Memory() : file_(::memfd_create("guest", MFD_CLOEXEC)) { resize(16 * kPage); }
  void resize(std::uint64_t bytes) { ASSERT_EQ(::ftruncate(file_.get(), off_t(bytes)), 0); }
  int error_of(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset = 0) {
    try {
      memory_.map(address, bytes, kAll, file_, offset);
    } catch (const MapError& error) {
      return error.error;
    }
    return 0;
  }
  Answer write(std::uint64_t address, std::size_t bytes) {
    return memory_.write(address, std::vector(bytes, std::byte{7}));
  }
  Answer read(std::uint64_t address, std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    return memory_.read(address, out);
  }
  std::vector<std::byte> in_file(std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    EXPECT_EQ(::pread(file_.get(), out.data(), bytes, off_t(offset)), ssize_t(bytes));
    return out;
  }

  Descriptor file_;
  GuestMemory memory_;
};

TEST_F(Memory, AnAccessMayCrossRangesThatTouch) {
  ASSERT_EQ(error_of(0x10000, kPage, 3 * kPage), 0);
  ASSERT_EQ(error_of(0x11000, kPage, kPage), 0);
  std::vector<std::byte> data(200);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i);
  EXPECT_EQ(memory_.write(0x11000 - 100, data), Answer::done);
  EXPECT_EQ(in_file(4 * kPage - 100, 100), std::vector(data.begin(), data.begin() + 100));
  EXPECT_EQ(in_file(kPage, 100), std::vector(data.begin() + 100, data.end()));
  std::vector<std::byte> back(200);
  EXPECT_EQ(memory_.read(0x11000 - 100, back), Answer::done);
  EXPECT_EQ(back, data);
  EXPECT_TRUE(memory_.holds(0x10000, 2 * kPage));
  EXPECT_FALSE(memory_.holds(0x10000, 2 * kPage + 1));
}

TEST_F(Memory, WhatIsNotMappedIsNotTouched) {
  ASSERT_EQ(error_of(0x10000, kPage), 0);
  EXPECT_EQ(write(0x10000 + kPage - 8, 9), Answer::unmapped);
  EXPECT_EQ(in_file(kPage - 8, 8), std::vector(8, std::byte{0}));  // all bytes or none
  EXPECT_EQ(read(0xffff, 1), Answer::unmapped);
  EXPECT_EQ(read(~0ull, 2), Answer::unmapped);
  EXPECT_EQ(read(0x10000, kPage), Answer::done);
  ASSERT_EQ(error_of(~0ull - kPage + 1, kPage), 0);  // the last page of the address space
  EXPECT_EQ(write(~0ull, 1), Answer::done);
  EXPECT_EQ(write(~0ull, 2), Answer::unmapped);
  EXPECT_FALSE(memory_.unmap(0x10000, kPage - 1));
  EXPECT_TRUE(memory_.unmap(0x10000, kPage));
  EXPECT_EQ(read(0x10000, 1), Answer::unmapped);
  memory_.clear();
  EXPECT_EQ(memory_.ranges(), 0u);
}

TEST_F(Memory, RangesThatAreNone) {
  ASSERT_EQ(error_of(0x10000, 2 * kPage), 0);
  EXPECT_EQ(error_of(0x10000, kPage), EEXIST);
  EXPECT_EQ(error_of(0x11fff, kPage), EEXIST);
  EXPECT_EQ(error_of(0xf001, kPage), EEXIST);
  EXPECT_EQ(error_of(0, 1ull << 40), EEXIST);
  EXPECT_EQ(error_of(0x20000, 0), EINVAL);
  EXPECT_EQ(error_of(~0ull, 2), EINVAL);
  EXPECT_EQ(error_of(0x20000, kPage, 16 * kPage), EINVAL);  // beyond the end of the file
  EXPECT_EQ(error_of(0x20000, 17 * kPage), EINVAL);
  EXPECT_EQ(error_of(0x20000, kPage, 1), EINVAL);
  EXPECT_EQ(error_of(0x20000, kPage, ~0ull - kPage + 1), EINVAL);
  EXPECT_EQ(error_of(0xf000, kPage, 15 * kPage), 0);  // ends where the next range begins
  EXPECT_EQ(error_of(0x12000, kPage, 15 * kPage), 0);
  EXPECT_EQ(memory_.ranges(), 3u);
}

TEST_F(Memory, Rights) {
  memory_.map(0x10000, kPage, {.read = true}, file_, 0);
  memory_.map(0x11000, kPage, {.write = true}, file_, kPage);
  EXPECT_EQ(read(0x10000, 8), Answer::done);
  EXPECT_EQ(write(0x10000, 8), Answer::no_right);
  EXPECT_EQ(read(0x11000, 8), Answer::no_right);
  EXPECT_EQ(write(0x11000, 8), Answer::done);
  EXPECT_EQ(write(0x10ff8, 16), Answer::no_right);
}

TEST_F(Memory, AFileThatShrinksEndsNothing) {
  ASSERT_EQ(error_of(0x10000, 16 * kPage), 0);
  EXPECT_EQ(write(0x10000 + 8 * kPage, 64), Answer::done);
  resize(8 * kPage);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(write(0x10000 + 8 * kPage, 64), Answer::taken_away);
    EXPECT_EQ(read(0x10000 + 15 * kPage, 8), Answer::taken_away);
    EXPECT_EQ(read(0x10000 + 8 * kPage - 8, 16), Answer::taken_away);
  }
  EXPECT_EQ(read(0x10000, 8 * kPage), Answer::done);
  resize(16 * kPage);  // the file grows again, with zeros
  EXPECT_EQ(read(0x10000 + 15 * kPage, 8), Answer::done);
}

TEST_F(Memory, ByMessages) {
  std::vector<std::byte> far(kPage);
  bool answers = true;
  memory_.map(0x20000, kPage, kAll,
              {[&](std::uint64_t address, std::span<std::byte> bytes) {
                 std::copy_n(far.begin() + std::ptrdiff_t(address - 0x20000), bytes.size(), bytes.begin());
                 return answers;
               },
               [&](std::uint64_t address, std::span<const std::byte> bytes) {
                 std::copy_n(bytes.begin(), bytes.size(), far.begin() + std::ptrdiff_t(address - 0x20000));
                 return answers;
               }});
  ASSERT_EQ(error_of(0x1f000, kPage), 0);
  EXPECT_EQ(write(0x1fff0, 32), Answer::done);
  EXPECT_EQ(far[15], std::byte{7});
  EXPECT_EQ(far[16], std::byte{0});
  EXPECT_EQ(read(0x20000, 16), Answer::done);
  answers = false;
  EXPECT_EQ(read(0x20000, 16), Answer::refused);
  EXPECT_EQ(write(0x20000, 16), Answer::refused);
}

// A driver that polls the last byte of an entry finds the other bytes complete: here another thread polls.
TEST_F(Memory, TheLastWordIsSeenLast) {
  constexpr std::size_t kEntry = 64;
  constexpr int kRounds = 20'000;
  alignas(kEntry) std::array<std::byte, kEntry> entry{};
  std::atomic<int> torn{0};
  std::thread driver([&] {
    for (int round = 1; round <= kRounds; ++round) {
      const auto owner = std::byte(round & 1);
      auto* last = reinterpret_cast<std::byte*>(&entry.back());
      while (std::atomic_ref(*last).load(std::memory_order_acquire) != owner) std::this_thread::yield();
      for (std::size_t i = 0; i + 1 < kEntry; ++i)
        if (std::atomic_ref(entry[i]).load(std::memory_order_relaxed) != owner) ++torn;
      std::atomic_ref(entry[0]).store(std::byte{0xff}, std::memory_order_release);  // consumed
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    std::array<std::byte, kEntry> next;
    next.fill(std::byte(round & 1));
    ASSERT_TRUE(copy_to_shared(entry.data(), next));
    while (std::atomic_ref(entry[0]).load(std::memory_order_acquire) != std::byte{0xff}) std::this_thread::yield();
  }
  driver.join();
  EXPECT_EQ(torn, 0);
}

TEST(SharedCopy, EveryLengthAndPlace) {
  std::array<std::byte, 128> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i + 1);
  for (std::size_t place = 0; place < 16; ++place)
    for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
      std::array<std::byte, 128> to{}, expected{};
      ASSERT_TRUE(copy_to_shared(to.data() + place, std::span(from).first(bytes)));
      std::memcpy(expected.data() + place, from.data(), bytes);
      ASSERT_EQ(to, expected) << place << " " << bytes;
    }
}

}  // namespace
}  // namespace rnicsim::sim

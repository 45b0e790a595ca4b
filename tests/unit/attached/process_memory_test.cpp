// SPDX-License-Identifier: Apache-2.0
// The device reaches the pages that were pinned, wherever the process has moved them, and no other page.
#include "sim/attached/processes/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "model/abi/attach.h"
#include "model/host/memory/iommu.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr Pasid kPasid = 5;

Descriptor pidfd_of(pid_t pid) { return Descriptor(int(::syscall(SYS_pidfd_open, pid, 0))); }

// The test's own process plays the process whose memory the device uses.
class ProcessMemoryTest : public testing::Test {
 protected:
  using Range = ProcessMemory::Range;

  ProcessMemoryTest() {
    iommu_.attach(kPasid, memory_);
    memory_.lost_write = [this](std::uint64_t address, std::uint64_t) { lost_.push_back(address); };
  }

  static std::uint8_t* map(std::size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
    return static_cast<std::uint8_t*>(mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, flags, fd, 0));
  }
  static std::uint64_t at(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

  // Returns the bus address; nullopt: refused.
  std::optional<std::uint64_t> pin(const void* address, std::uint64_t bytes, bool writable = true) {
    const auto bus = memory_.bus_address_for(at(address), bytes);
    const int error = iommu_.pin(kPasid, bus, bytes, writable);
    return error == 0 ? std::optional(bus) : std::nullopt;
  }
  std::vector<Range> unpin(std::uint64_t bus, std::uint64_t bytes) {
    EXPECT_EQ(iommu_.unpin(kPasid, bus, bytes), 0);
    std::vector<Range> free;
    memory_.unpinned({bus, bytes}, first_pinned(), free);
    return free;
  }
  ProcessMemory::FirstPinned first_pinned() {
    return [this](const Range& range) -> std::optional<Range> {
      const auto found = iommu_.first_pinned(kPasid, range.begin, range.bytes);
      return found ? std::optional(Range{found->first, found->second}) : std::nullopt;
    };
  }
  // Moves pages aside, as the process does before it unmaps them.
  std::uint64_t put_aside(const void* address, std::uint64_t bytes) {
    const auto pages = memory_.first_pinned_pages({at(address), bytes}, first_pinned(), false);
    EXPECT_TRUE(pages);
    const auto place = memory_.place_aside(*pages);
    memory_.move(*pages, place, first_pinned());
    EXPECT_NE(mremap(reinterpret_cast<void*>(pages->begin), pages->bytes, pages->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                     reinterpret_cast<void*>(place)),
              MAP_FAILED);
    return place;
  }

  std::optional<std::uint8_t> read(std::uint64_t bus) {
    std::array<std::byte, 1> data;
    return memory_.read(bus, data) ? std::optional(std::uint8_t(data[0])) : std::nullopt;
  }
  bool write(std::uint64_t bus, std::uint8_t value, std::size_t bytes = 1) {
    return memory_.write(bus, std::vector(bytes, std::byte(value)));
  }

  Descriptor self_ = pidfd_of(getpid());
  SharedMemory shared_{"test", abi::kMemoryBytes};
  ProcessMemory memory_{getpid(), self_, shared_};
  host::Iommu iommu_{"h0"};
  std::vector<std::uint64_t> lost_;
};

TEST_F(ProcessMemoryTest, WritesAreSeenAfterAFlush) {
  auto* page = map(1);
  ASSERT_EQ(pin(page, kPage), at(page));
  EXPECT_TRUE(write(at(page), 1));
  EXPECT_EQ(*page, 0);
  EXPECT_EQ(read(at(page)), 1);
  EXPECT_EQ(*page, 1);
  munmap(page, kPage);
}

// Any process of the host that holds the turn may read another's memory.
TEST_F(ProcessMemoryTest, WritesAreSeenInTheTurnOfAnyoneOfTheHost) {
  auto* page = map(1);
  ASSERT_EQ(pin(page, kPage), at(page));
  HostTurns turns, elsewhere;
  memory_.join(turns);
  ProcessMemory neighbour(getpid(), self_, shared_), stranger(getpid(), self_, shared_);
  neighbour.join(turns);
  stranger.join(elsewhere);
  EXPECT_TRUE(write(at(page), 1));
  stranger.turn_begins();
  EXPECT_EQ(*page, 0);
  neighbour.turn_begins();
  EXPECT_EQ(*page, 1);
  munmap(page, kPage);
}

// Reads and writes of all lengths, on more pages than are kept, some of them shared, and turns in which the process
// reads and writes.
TEST_F(ProcessMemoryTest, TheDeviceAndTheProcessSeeOneMemory) {
  constexpr std::size_t kPages = 2 * KeptPages::kMost, kShared = 8, kBytes = kPages * kPage;
  const Descriptor file(memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kShared * kPage), 0);
  auto* memory = map(kPages);
  mmap(memory + 32 * kPage, kShared * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  ASSERT_EQ(pin(memory, kBytes), at(memory));
  std::vector<std::uint8_t> expected(kBytes);
  std::mt19937 random(1);
  const auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  for (int step = 0; step < 20'000; ++step) {
    // Mostly in few pages, so that accesses overlap.
    const std::size_t room = step % 64 == 0 ? kBytes : 48 * kPage;
    const std::size_t begin = up_to(room - 1);
    const std::size_t bytes = std::min(up_to(up_to(1) != 0 ? 300 : up_to(7) != 0 ? 5 * kPage : room), room - begin);
    const auto value = std::uint8_t(up_to(255));
    switch (up_to(8)) {
      case 0:
        memory_.turn_begins();
        ASSERT_TRUE(std::equal(expected.begin() + begin, expected.begin() + begin + bytes, memory + begin)) << step;
        memset(memory + begin, value, bytes);
        memset(expected.data() + begin, value, bytes);
        break;
      case 1:
      case 2:
      case 3:
      case 4: {
        std::vector<std::byte> data(bytes);
        ASSERT_TRUE(memory_.read(at(memory) + begin, data));
        ASSERT_EQ(memcmp(data.data(), expected.data() + begin, bytes), 0) << step;
        break;
      }
      default: ASSERT_TRUE(write(at(memory) + begin, value, bytes)); memset(expected.data() + begin, value, bytes);
    }
  }
  memory_.flush();
  EXPECT_EQ(memcmp(memory, expected.data(), kBytes), 0);
  EXPECT_TRUE(lost_.empty());
  munmap(memory, kBytes);
}

TEST_F(ProcessMemoryTest, WhatOthersShareIsSeenAtOnce) {
  const Descriptor file(memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 2 * kPage), 0);
  auto* here = map(2, MAP_SHARED, file.get());
  auto* there = map(2, MAP_SHARED, file.get());
  ASSERT_EQ(pin(here, 2 * kPage), at(here));
  ASSERT_EQ(pin(there + kPage, kPage), at(there) + kPage);
  EXPECT_TRUE(write(at(here) + kPage, 1));
  EXPECT_EQ(there[kPage], 1);
  EXPECT_EQ(memory_.shared_page(at(here) + kPage + 8), memory_.shared_page(at(there) + kPage));
  EXPECT_NE(memory_.shared_page(at(here)), memory_.shared_page(at(there) + kPage));
  EXPECT_EQ(iommu_.physical(kPasid, at(here) + kPage), iommu_.physical(kPasid, at(there) + kPage));
  // A new mapping at the same address belongs to another page.
  munmap(here, 2 * kPage);
  mmap(here, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(pin(here + kPage, 1), at(here) + kPage);
  EXPECT_EQ(memory_.shared_page(at(here) + kPage), std::nullopt);
  EXPECT_NE(memory_.shared_page(at(here)), std::nullopt);  // pinned before, and not pinned again
  munmap(here, 2 * kPage);
  munmap(there, 2 * kPage);
}

TEST_F(ProcessMemoryTest, ARefusedPinLeavesWhatIsKnown) {
  const Descriptor file(memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kPage), 0);
  auto* page = map(3);
  mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  ASSERT_EQ(pin(page, 2 * kPage), at(page));
  munmap(page + kPage, 2 * kPage);
  EXPECT_TRUE(write(at(page) + kPage, 1));
  memory_.flush();
  ASSERT_EQ(lost_.size(), 1u);
  const auto shared = memory_.shared_page(at(page));
  ASSERT_TRUE(shared);

  EXPECT_FALSE(pin(page, 3 * kPage));
  EXPECT_EQ(memory_.shared_page(at(page)), shared);
  EXPECT_TRUE(write(at(page), 2));
  EXPECT_EQ(*page, 2);  // at once, as other processes see the page
  EXPECT_FALSE(write(at(page) + kPage, 3));
  munmap(page, kPage);
}

TEST_F(ProcessMemoryTest, PagesPutAsideStay) {
  auto* page = map(3);
  page[0] = 1, page[kPage] = 2, page[2 * kPage] = 3;
  ASSERT_EQ(pin(page + 100, 2 * kPage), at(page) + 100);  // range over three pages
  EXPECT_TRUE(write(at(page) + kPage, 4));                // on its way to memory
  put_aside(page + kPage, kPage);
  EXPECT_EQ(read(at(page)), 1);
  EXPECT_EQ(read(at(page) + kPage), 4);
  EXPECT_EQ(read(at(page) + 2 * kPage), 3);
  // A write across both ends of the moved page.
  EXPECT_TRUE(write(at(page) + kPage - 1, 9, kPage + 2));
  memory_.flush();
  EXPECT_EQ(page[kPage - 1], 9);
  EXPECT_EQ(page[2 * kPage], 9);
  EXPECT_EQ(read(at(page) + 2 * kPage - 1), 9);

  mmap(page + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  page[kPage] = 7;
  const auto other = pin(page, 3 * kPage);
  ASSERT_TRUE(other);
  EXPECT_NE(*other, at(page));
  EXPECT_EQ(*other % (1 << 30), at(page) % (1 << 30));
  EXPECT_EQ(read(*other + kPage), 7);
  EXPECT_EQ(read(at(page) + kPage), 9);
  EXPECT_EQ(read(*other), 1);
  EXPECT_TRUE(write(*other + kPage, 8));
  memory_.flush();
  EXPECT_EQ(page[kPage], 8);

  const auto free = unpin(at(page) + 100, 2 * kPage);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].bytes, kPage);
  munmap(reinterpret_cast<void*>(free[0].begin), free[0].bytes);
  EXPECT_EQ(read(*other + kPage), 8);
  EXPECT_TRUE(unpin(*other, 3 * kPage).empty());
  EXPECT_EQ(pin(page, 3 * kPage), at(page));
  munmap(page, 3 * kPage);
}

TEST_F(ProcessMemoryTest, PagesAsideGoWithTheLastPin) {
  auto* page = map(2);
  ASSERT_EQ(pin(page, 2 * kPage), at(page));
  ASSERT_EQ(pin(page + kPage, 8), at(page) + kPage);
  const auto place = put_aside(page, 2 * kPage);
  auto free = unpin(at(page), 2 * kPage);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].begin, place);
  EXPECT_EQ(free[0].bytes, kPage);
  free = unpin(at(page) + kPage, 8);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].begin, place + kPage);
  munmap(reinterpret_cast<void*>(place), 2 * kPage);
}

TEST_F(ProcessMemoryTest, PagesThatMoveAreTheSamePages) {
  auto* page = map(2);
  auto* place = map(2);
  page[kPage] = 1;
  ASSERT_EQ(pin(page, 2 * kPage), at(page));
  const auto physical = iommu_.physical(kPasid, at(page) + kPage);
  ASSERT_EQ(mremap(page, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
  memory_.move({at(page), 2 * kPage}, at(place), first_pinned());
  EXPECT_EQ(read(at(page) + kPage), 1);
  // A registration at the new address uses the same page.
  const auto bus = pin(place + kPage, 64);
  EXPECT_EQ(bus, at(page) + kPage);
  EXPECT_EQ(iommu_.physical(kPasid, *bus), physical);
  put_aside(place, 2 * kPage);
  EXPECT_EQ(read(at(page) + kPage), 1);
  EXPECT_FALSE(memory_.first_pinned_pages({at(place), 2 * kPage}, first_pinned(), false));
}

TEST_F(ProcessMemoryTest, WhatIsNotThereIsLostOnce) {
  auto* page = map(2);
  ASSERT_EQ(pin(page, 2 * kPage), at(page));
  munmap(page + kPage, kPage);
  EXPECT_TRUE(write(at(page), 1));
  EXPECT_TRUE(write(at(page) + kPage, 2));  // the loss is not known yet
  EXPECT_TRUE(write(at(page) + 1, 3));
  memory_.flush();
  EXPECT_THAT(lost_, testing::ElementsAre(at(page) + kPage));
  EXPECT_EQ(page[0], 1);
  EXPECT_EQ(page[1], 3);
  mmap(page + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  EXPECT_FALSE(write(at(page) + kPage, 4));
  EXPECT_FALSE(read(at(page) + kPage));
  EXPECT_TRUE(write(at(page), 5));
  ASSERT_EQ(pin(page + kPage, kPage), at(page) + kPage);
  EXPECT_TRUE(write(at(page) + kPage, 6));
  memory_.flush();
  EXPECT_EQ(page[kPage], 6);
  munmap(page, 2 * kPage);
}

TEST_F(ProcessMemoryTest, RightsTakenAwaySinceCountForTheProcessAlone) {
  auto* page = map(1);
  page[1] = 2;
  ASSERT_EQ(pin(page, kPage), at(page));
  mprotect(page, kPage, PROT_NONE);
  EXPECT_EQ(read(at(page) + 1), 2);
  EXPECT_TRUE(write(at(page), 1));
  memory_.flush();
  EXPECT_TRUE(lost_.empty());
  mprotect(page, kPage, PROT_READ);
  EXPECT_EQ(*page, 1);
  EXPECT_FALSE(pin(page, kPage));
  EXPECT_TRUE(pin(page, kPage, false));
  munmap(page, kPage);
}

TEST_F(ProcessMemoryTest, AnImageThatEndedHasNoMemory) {
  auto* page = map(1);
  ASSERT_EQ(pin(page, kPage), at(page));
  EXPECT_TRUE(write(at(page), 1));
  memory_.end();
  memory_.flush();
  EXPECT_EQ(*page, 0);
  EXPECT_FALSE(read(at(page)));
  // The pages stay pinned until the queue pairs are destroyed: a write is accepted and discarded.
  EXPECT_TRUE(write(at(page), 1));
  memory_.flush();
  EXPECT_EQ(*page, 0);
  EXPECT_FALSE(memory_.exists());
  munmap(page, kPage);
}

// A process number may be reused as soon as a parent has waited for the process: here the test's own process plays the
// next user.
TEST_F(ProcessMemoryTest, AnotherProcessWithItsNumberIsLeftAlone) {
  auto* page = map(1);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const Descriptor ended = pidfd_of(child);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ProcessMemory memory(getpid(), ended, shared_);
  memory.lost_write = [](std::uint64_t, std::uint64_t) { FAIL(); };
  std::array<std::byte, 8> data{std::byte(1)};
  EXPECT_TRUE(memory.write(at(page), data));
  memory.flush();
  EXPECT_EQ(*page, 0);
  EXPECT_FALSE(memory.read(at(page), data));
  EXPECT_FALSE(memory.exists());
  munmap(page, kPage);
}

}  // namespace
}  // namespace rnicsim::sim

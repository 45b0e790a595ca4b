// SPDX-License-Identifier: Apache-2.0
// The device reaches exactly the pinned memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <vector>

#include "model/host/memory/iommu.h"

namespace rnicsim::host {
namespace {

class FakeMemory : public AddressSpace {
 public:
  bool read(std::uint64_t address, std::span<std::byte> bytes) override { return touches(address, bytes.size()); }
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override {
    return touches(address, bytes.size());
  }

  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override {
    return touches(address, bytes) && !(writable && read_only) ? 0 : EFAULT;
  }
  std::optional<SharedPage> shared_page(std::uint64_t address) const override {
    if (address < shared_from) return std::nullopt;
    return SharedPage{1, 2, (address - shared_from) / kPage};
  }

  std::uint64_t mapped_end = ~0ull;
  bool read_only = false;
  std::uint64_t shared_from = ~0ull;

 private:
  bool touches(std::uint64_t address, std::size_t bytes) const {
    return address <= mapped_end && bytes <= mapped_end - address;
  }
};

class IommuTest : public ::testing::Test {
 protected:
  static constexpr Pasid kMine = 7;
  static constexpr Pasid kOther = 8;

  IommuTest() {
    iommu_.attach(kMine, mine_);
    iommu_.attach(kOther, other_);
    iommu_.fault.subscribe([this](const IommuFault& fault) { faults_.push_back(fault); });
  }
  bool readable(std::uint64_t address, std::size_t bytes, Pasid pasid = kMine) {
    std::vector<std::byte> data(bytes);
    return iommu_.read(pasid, address, data);
  }

  FakeMemory mine_, other_;
  Iommu iommu_{"h0"};
  std::vector<IommuFault> faults_;
};

TEST_F(IommuTest, OnlyWhatWasPinned) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  EXPECT_TRUE(readable(0x1000, 0x100));
  EXPECT_TRUE(readable(0x10ff, 1));
  EXPECT_FALSE(readable(0x0fff, 1));
  EXPECT_FALSE(readable(0x1100, 1));
  EXPECT_FALSE(readable(0x10ff, 2));
  EXPECT_EQ(iommu_.counters().faults, 3u);
  EXPECT_EQ(iommu_.counters().reads, 2u);
  EXPECT_EQ(iommu_.counters().read_bytes, 0x101u);
}

TEST_F(IommuTest, AFaultSaysWhatHappened) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  std::array<std::byte, 16> data{};
  EXPECT_FALSE(iommu_.write(kMine, 0x2000, data));
  EXPECT_FALSE(iommu_.write(99, 0x1000, data));
  mine_.mapped_end = 0x1008;
  EXPECT_FALSE(iommu_.write(kMine, 0x1000, data));
  ASSERT_EQ(faults_.size(), 3u);
  EXPECT_EQ(faults_[0].reason, IommuFault::Reason::not_pinned);
  EXPECT_EQ(faults_[0].address, 0x2000u);
  EXPECT_EQ(faults_[0].length, 16u);
  EXPECT_TRUE(faults_[0].write);
  EXPECT_EQ(faults_[1].reason, IommuFault::Reason::no_process);
  EXPECT_EQ(faults_[2].reason, IommuFault::Reason::not_mapped);
}

// An observer reads what a device would read, without side effects, and is told of each pin.
TEST_F(IommuTest, LooksLeaveNoTrace) {
  std::vector<IommuMapping> mappings;
  iommu_.mapping.subscribe([&](const IommuMapping& mapping) { mappings.push_back(mapping); });
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  std::array<std::byte, 16> data{};
  EXPECT_TRUE(iommu_.peek(kMine, 0x1000, data));
  EXPECT_FALSE(iommu_.peek(kMine, 0x2000, data));
  EXPECT_FALSE(iommu_.peek(99, 0x1000, data));
  EXPECT_FALSE(iommu_.peek(kMine, ~0ull, data));
  ASSERT_EQ(iommu_.unpin(kMine, 0x1000, 0x100), 0);
  EXPECT_FALSE(iommu_.peek(kMine, 0x1000, data));
  EXPECT_EQ(iommu_.counters().reads, 0u);
  EXPECT_EQ(iommu_.counters().faults, 0u);
  EXPECT_TRUE(faults_.empty());
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_TRUE(mappings[0].pinned && mappings[0].address == 0x1000 && mappings[0].length == 0x100);
  EXPECT_FALSE(mappings[1].pinned);
}

// The IOMMU remembers ranges that it found pinned: an access must not find a range after its pin has ended.
TEST_F(IommuTest, RangesThatAreReadInTurnEndWithTheirPins) {
  constexpr std::uint64_t kRanges[] = {0x1000, 0x3000, 0x5000};
  for (const auto range : kRanges) ASSERT_EQ(iommu_.pin(kMine, range, 0x100), 0);
  for (int turn = 0; turn < 2; ++turn)
    for (const auto range : kRanges) EXPECT_TRUE(readable(range, 0x100));
  for (const auto gone : kRanges) {
    ASSERT_EQ(iommu_.unpin(kMine, gone, 0x100), 0);
    for (const auto range : kRanges) EXPECT_EQ(readable(range, 0x100), range > gone);
  }
  EXPECT_FALSE(readable(0x1000, 0x100, kOther));
}

TEST_F(IommuTest, WhatWasPinnedForReadingIsNotWritten) {
  std::array<std::byte, 16> data{};
  mine_.read_only = true;
  EXPECT_EQ(iommu_.pin(kMine, 0x1000, 0x100), EFAULT);
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100, false), 0);
  EXPECT_TRUE(readable(0x1000, 16));
  EXPECT_FALSE(iommu_.write(kMine, 0x1000, data));
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].reason, IommuFault::Reason::read_only);
  EXPECT_EQ(iommu_.unpin(kMine, 0x1000, 0x100, true), EINVAL);
  // Another region over a part of the range allows writes.
  mine_.read_only = false;
  ASSERT_EQ(iommu_.pin(kMine, 0x1080, 0x80), 0);
  EXPECT_TRUE(iommu_.write(kMine, 0x1080, data));
  EXPECT_FALSE(iommu_.write(kMine, 0x1078, data));
  EXPECT_TRUE(readable(0x1000, 0x100));
  ASSERT_EQ(iommu_.unpin(kMine, 0x1080, 0x80), 0);
  EXPECT_FALSE(iommu_.write(kMine, 0x1080, data));
  EXPECT_TRUE(readable(0x1000, 0x100));
}

TEST_F(IommuTest, PagesHaveAPhysicalAddress) {
  EXPECT_EQ(iommu_.physical(kMine, 0x1010), std::nullopt);
  EXPECT_EQ(iommu_.physical(99, 0x1010), std::nullopt);
  for (const auto pasid : {kMine, kOther}) ASSERT_EQ(iommu_.pin(pasid, 0x1000, 0x8000), 0);
  const auto first = iommu_.physical(kMine, 0x1010);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first % 4096, 0x10u);
  EXPECT_EQ(iommu_.physical(kMine, 0x1018), *first + 8);
  EXPECT_NE(*iommu_.physical(kMine, 0x2010), *first);
  EXPECT_NE(*iommu_.physical(kOther, 0x1010), *first);
  // Physical pages are numbered in the order of requests.
  EXPECT_EQ(*first / 4096 + 3, *iommu_.physical(kMine, 0x7000) / 4096);
}

TEST_F(IommuTest, MappingsOfOnePageHaveOnePhysicalAddress) {
  mine_.shared_from = 0x4000;
  other_.shared_from = 0x9000;
  for (const auto pasid : {kMine, kOther}) ASSERT_EQ(iommu_.pin(pasid, 0x1000, 0xa000), 0);
  EXPECT_EQ(iommu_.physical(kMine, 0x4008), iommu_.physical(kOther, 0x9008));
  EXPECT_EQ(iommu_.physical(kMine, 0x5008), iommu_.physical(kOther, 0xa008));
  EXPECT_NE(iommu_.physical(kMine, 0x4008), iommu_.physical(kMine, 0x5008));
  EXPECT_NE(iommu_.physical(kMine, 0x2008), iommu_.physical(kOther, 0x2008));
  // After a new pin the address translates to the page that is mapped now.
  ASSERT_EQ(iommu_.unpin(kMine, 0x1000, 0xa000), 0);
  mine_.shared_from = 0x5000;
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0xa000), 0);
  EXPECT_EQ(iommu_.physical(kMine, 0x5008), iommu_.physical(kOther, 0x9008));
}

TEST_F(IommuTest, TheFirstRangeThatIsPinned) {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x200), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x1100, 0x200), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x2000, 0x100), 0);
  EXPECT_EQ(iommu_.first_pinned(kMine, 0, 0x3000), Range(0x1000, 0x300));
  EXPECT_EQ(iommu_.first_pinned(kMine, 0x1080, 0x100), Range(0x1080, 0x100));
  EXPECT_EQ(iommu_.first_pinned(kMine, 0x1300, 0xd01), Range(0x2000, 1));
  EXPECT_EQ(iommu_.first_pinned(kMine, 0x1300, 0xd00), std::nullopt);
  EXPECT_EQ(iommu_.first_pinned(kMine, 0x2100, ~0ull - 0x2100), std::nullopt);
  EXPECT_EQ(iommu_.first_pinned(kOther, 0, 0x3000), std::nullopt);
}

TEST_F(IommuTest, AnotherProcessesRange) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  EXPECT_FALSE(readable(0x1000, 1, kOther));
}

TEST_F(IommuTest, PinsCount) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x300), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x1100, 0x100), 0);
  ASSERT_EQ(iommu_.unpin(kMine, 0x1000, 0x300), 0);
  EXPECT_FALSE(readable(0x10ff, 1));
  EXPECT_TRUE(readable(0x1100, 0x100));
  EXPECT_FALSE(readable(0x1200, 1));
  ASSERT_EQ(iommu_.unpin(kMine, 0x1100, 0x100), 0);
  EXPECT_FALSE(readable(0x1100, 1));
}

TEST_F(IommuTest, ARangeMaySpanSeveralPins) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x1080, 0x100), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x1180, 0x80), 0);
  EXPECT_TRUE(readable(0x1000, 0x200));
  ASSERT_EQ(iommu_.pin(kMine, 0x1201, 0x10), 0);
  EXPECT_FALSE(readable(0x1000, 0x202));
}

TEST_F(IommuTest, UnpinOfWhatIsNotPinned) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  EXPECT_EQ(iommu_.unpin(kMine, 0x1000, 0x101), EINVAL);
  EXPECT_EQ(iommu_.unpin(kMine, 0x2000, 1), EINVAL);
  EXPECT_EQ(iommu_.unpin(kOther, 0x1000, 0x100), EINVAL);
  EXPECT_EQ(iommu_.unpin(99, 0x1000, 0x100), ESRCH);
  EXPECT_TRUE(readable(0x1000, 0x100));
}

TEST_F(IommuTest, APinIsTakenAwayAsItWasMade) {
  std::array<std::byte, 16> data{};
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100, true), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x80, false), 0);
  EXPECT_EQ(iommu_.unpin(kMine, 0x1000, 0x100, false), EINVAL);  // its second half has no such pin
  ASSERT_EQ(iommu_.unpin(kMine, 0x1000, 0x80, false), 0);
  EXPECT_EQ(iommu_.unpin(kMine, 0x1000, 0x80, false), EINVAL);
  EXPECT_TRUE(iommu_.write(kMine, 0x10f0, data));
  ASSERT_EQ(iommu_.unpin(kMine, 0x1000, 0x100, true), 0);
  EXPECT_FALSE(readable(0x1000, 1));
  EXPECT_FALSE(iommu_.write(kMine, 0x1000, data));
}

TEST_F(IommuTest, AddressesThatWrap) {
  EXPECT_EQ(iommu_.pin(kMine, ~0ull - 0xf, 0x20), EINVAL);
  EXPECT_EQ(iommu_.pin(kMine, 1, ~0ull), EINVAL);
  EXPECT_EQ(iommu_.unpin(kMine, ~0ull, 2), EINVAL);
  EXPECT_FALSE(readable(~0ull - 3, 8));
  ASSERT_EQ(iommu_.pin(kMine, ~0ull - 0x10, 0x10), 0);
  EXPECT_TRUE(readable(~0ull - 0x10, 0x10));
  EXPECT_FALSE(readable(~0ull - 0x10, 0x11));
}

TEST_F(IommuTest, NothingIsAlwaysThere) {
  EXPECT_EQ(iommu_.pin(kMine, 0x5000, 0), 0);
  EXPECT_EQ(iommu_.unpin(kMine, 0x5000, 0), 0);
  EXPECT_TRUE(readable(0x5000, 0));
  EXPECT_FALSE(readable(0x5000, 1));
}

TEST_F(IommuTest, MemoryThatIsNotThereCannotBePinned) {
  mine_.mapped_end = 0x2000;
  EXPECT_EQ(iommu_.pin(kMine, 0x1ff0, 0x20), EFAULT);
  EXPECT_EQ(iommu_.pin(kMine, 0x3000, 1), EFAULT);
}

TEST_F(IommuTest, DeathTakesThePins) {
  ASSERT_EQ(iommu_.pin(kMine, 0x1000, 0x100), 0);
  iommu_.detach(kMine);
  EXPECT_FALSE(readable(0x1000, 1));
  iommu_.attach(kMine, mine_);
  EXPECT_FALSE(readable(0x1000, 1));
}

// --- Several devices.

// Each device has its own domain; all devices reach a process's memory.
TEST_F(IommuTest, EachDeviceHasADomainOfItsOwn) {
  FakeMemory first, second;
  iommu_.attach(Iommu::own_domain(0), first);
  iommu_.attach(Iommu::own_domain(1), second);
  ASSERT_EQ(iommu_.pin(Iommu::own_domain(1), 0x1000, 0x100), 0);
  ASSERT_EQ(iommu_.pin(kMine, 0x5000, 0x100), 0);
  std::array<std::byte, 8> data{};
  EXPECT_FALSE(iommu_.read({kKernelPasid, 0}, 0x1000, data));
  EXPECT_TRUE(iommu_.read({kKernelPasid, 1}, 0x1000, data));
  EXPECT_TRUE(iommu_.write({kMine, 0}, 0x5000, data));
  EXPECT_TRUE(iommu_.write({kMine, 1}, 0x5000, data));
  EXPECT_EQ(iommu_.counters(0).faults, 1u);
  EXPECT_EQ(iommu_.counters(1).reads, 1u);
  EXPECT_EQ(iommu_.counters(1).writes, 1u);
  EXPECT_EQ(faults_.back().from.function, 0u);
}

// A PASID has 20 bits: a larger number must not select another device's domain.
TEST_F(IommuTest, APasidThatIsTooGreatIsNobodys) {
  FakeMemory second;
  iommu_.attach(Iommu::own_domain(1), second);
  ASSERT_EQ(iommu_.pin(Iommu::own_domain(1), 0x1000, 0x100), 0);
  std::array<std::byte, 8> data{};
  EXPECT_FALSE(iommu_.read({Iommu::own_domain(1), 0}, 0x1000, data));
  EXPECT_EQ(faults_.back().reason, IommuFault::Reason::no_process);
}

TEST_F(IommuTest, PagesOnDemandAreThereUntilTheyAreWithdrawn) {
  mine_.mapped_end = 0x9000;
  EXPECT_FALSE(iommu_.page_translation(kMine, 0x5000).present);
  ASSERT_EQ(iommu_.bring_in(kMine, 0x5010, 0x1000, false), 0);
  for (const std::uint64_t page : {0x5000, 0x6000}) {
    const auto there = iommu_.page_translation(kMine, page + 8);
    EXPECT_TRUE(there.present);
    EXPECT_FALSE(there.writable);
    EXPECT_EQ(there.address, page);
    EXPECT_FALSE(iommu_.page_translation(kOther, page).present);
  }
  EXPECT_FALSE(iommu_.page_translation(kMine, 0x4fff).present);
  EXPECT_FALSE(iommu_.page_translation(kMine, 0x7000).present);
  EXPECT_TRUE(readable(0x5000, 0x2000));
  // For a write, pages are brought in again, together with missing pages.
  ASSERT_EQ(iommu_.bring_in(kMine, 0x6000, 0x2000, true), 0);
  EXPECT_TRUE(iommu_.page_translation(kMine, 0x6000).writable);
  EXPECT_TRUE(iommu_.page_translation(kMine, 0x7000).writable);
  EXPECT_FALSE(iommu_.page_translation(kMine, 0x5000).writable);
  EXPECT_EQ(iommu_.bring_in(kMine, 0x8000, 0x1001, false), EFAULT);
  EXPECT_EQ(iommu_.bring_in(99, 0x8000, 1, false), ESRCH);

  const auto runs = iommu_.withdraw(kMine, 0x5800, 0x1000);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].address, 0x5000u);
  EXPECT_EQ(runs[0].pages, 2u);
  EXPECT_TRUE(iommu_.withdraw(kMine, 0x5800, 0x1000).empty());
  EXPECT_FALSE(iommu_.page_translation(kMine, 0x5000).present);
  EXPECT_TRUE(readable(0x5000, 0x2000));  // until the page is released
  iommu_.release(kMine, 0x5800, 0x1000);
  EXPECT_FALSE(readable(0x5000, 1));
  EXPECT_FALSE(readable(0x6fff, 1));
  EXPECT_TRUE(readable(0x7000, 0x1000));
}

TEST_F(IommuTest, WhatIsPinnedTooStays) {
  ASSERT_EQ(iommu_.pin(kMine, 0x5000, 0x800), 0);
  ASSERT_EQ(iommu_.bring_in(kMine, 0x5000, 0x1000, true), 0);
  EXPECT_EQ(iommu_.withdraw(kMine, 0, ~0ull).size(), 1u);
  iommu_.release(kMine, 0, ~0ull);
  EXPECT_TRUE(readable(0x5000, 0x800));
  EXPECT_FALSE(readable(0x5800, 1));
}

}  // namespace
}  // namespace rnicsim::host

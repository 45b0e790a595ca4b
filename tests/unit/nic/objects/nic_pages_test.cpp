// SPDX-License-Identifier: Apache-2.0
// Regions whose pages lie anywhere: a driver writes the MTT itself.
#include "model/nic/contexts/context_cache.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/nic.h"
#include "tests/unit/nic/objects/paged_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::SendOpcode;

TEST_F(Pages, MayLieBackwards) {
  for (const std::uint32_t l1 : {0u, 1u, 4096u}) {
    build(with_caches(l1 == 4096 ? 128 : 0, l1));
    connect(4);
    for (auto* node : {&a(), &b()}) lend(*node);
    const auto memory = b().host.allocate(kPages * kPage);
    write_entries(b(), memory, backwards);
    ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
    // The other end's pages are interleaved: gather and scatter both use a table.
    const auto scattered = a().host.allocate(2 * kPages * kPage);
    write_entries(a(), scattered, [](std::uint32_t page) { return 2 * page; });
    ASSERT_EQ(make(a(), kPagedKey), CommandStatus::ok);

    const auto at_a = [&](std::uint64_t i) { return a().host.at(scattered + 2 * (i / kPage) * kPage + i % kPage); };
    const auto at_b = [&](std::uint64_t i) {
      return b().host.at(memory + backwards(std::uint32_t(i / kPage)) * kPage + i % kPage);
    };
    std::uint8_t seed = 0;
    for (const auto& [offset, length] : {std::pair{0u, 1u},
                                         {kPage - 1, 2u},
                                         {kPage - 3, kPage + 6},
                                         {0u, kPages * kPage},
                                         {kPages * kPage - 1, 1u},
                                         {kPage, kPage},
                                         {100u, 5 * kPage}}) {
      SCOPED_TRACE(testing::Message() << "l1 " << l1 << " offset " << offset << " length " << length);
      for (const auto opcode : {SendOpcode::write, SendOpcode::read}) {
        ++seed;
        for (std::uint32_t i = 0; i < kPages * kPage; ++i) {
          *at_a(i) = std::byte(i * 7 + (i >> 8) + seed);
          *at_b(i) = std::byte(i * 11 + (i >> 8) + 3 * seed + 1);
        }
        std::vector<std::byte> sent(length), kept;
        const bool writes = opcode == SendOpcode::write;
        for (std::uint32_t i = 0; i < length; ++i) sent[i] = writes ? *at_a(offset + i) : *at_b(offset + i);
        for (std::uint32_t i = 0; i < kPages * kPage; ++i)
          if (i < offset || i >= offset + length) kept.push_back(writes ? *at_b(i) : *at_a(i));
        a().post_send({.opcode = opcode,
                       .length = length,
                       .remote = Remote{kIova + offset, kPagedKey},
                       .address = kIova + offset,
                       .lkey = kPagedKey});
        ASSERT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
        std::size_t other = 0;
        for (std::uint32_t i = 0; i < kPages * kPage; ++i) {
          const auto byte = writes ? *at_b(i) : *at_a(i);
          if (i < offset || i >= offset + length)
            ASSERT_EQ(byte, kept[other++]) << i;
          else
            ASSERT_EQ(byte, sent[i - offset]) << i;
        }
      }
    }
    if (l1 == 4096) {
      // A fill of the region's entry and of each page's, however many packets miss a page before its fill is complete.
      EXPECT_EQ(b().nic.counters().contexts.fills, kPages);
      EXPECT_GE(b().nic.counters().contexts.mtt.misses, kPages);
    }
  }
}

// Each page outside the cache's first level costs a wait, whether or not the region's entry is cached.
TEST_F(Pages, TheSecondLevelIsWaitedFor) {
  for (const std::uint32_t regions : {2048u, 0u}) {
    const auto landing = [&](Duration latency, std::uint32_t offset) {
      auto params = with_caches(0, 4096);
      params.contexts.mpt.l1_entries = regions;
      params.contexts.mtt.l1_latency = latency;
      build(params);
      connect();
      lend(b());
      const auto memory = b().host.allocate(kPages * kPage);
      write_entries(b(), memory, forwards);
      EXPECT_EQ(make(b(), kPagedKey), CommandStatus::ok);
      Duration took;
      for (int i = 0; i < 2; ++i) {  // the first WRITE fills the cache
        run(100);
        b().host.landed.clear();
        const auto posted = now();
        a().post_send({.opcode = SendOpcode::write, .length = 16, .remote = Remote{kIova + offset, kPagedKey}});
        EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
        for (const auto& [address, at] : b().host.landed)
          if (address >= memory && address < memory + kPages * kPage) took = at - posted;
      }
      EXPECT_GT(took, 0_s);
      return took;
    };
    for (const auto& [offset, pages] : {std::pair{100u, 1}, {kPage - 8, 2}})
      EXPECT_EQ((landing(1045_ns, offset) - landing(45_ns, offset)).ps, (pages * 1000_ns).ps)
          << regions << " regions, " << pages << " pages";
  }
}

TEST_F(Pages, AWordCutInTwoIsNoAtomics) {
  connect();
  lend(b());
  const auto memory = b().host.allocate(kPages * kPage);
  write_entries(b(), memory, backwards);
  ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
  const auto add_to = [&](std::uint64_t address, std::uint16_t index) {
    struct Wqe {
      abi::ControlSegment control;
      abi::RemoteAddressSegment remote;
      abi::AtomicSegment atomic;
      abi::DataSegment data;
    } wqe;
    wqe.control.opcode = SendOpcode::fetch_add;
    wqe.control.wqe_index = index;
    wqe.control.qpn_flags = kQpn << 8 | abi::ControlSegment::kSignaled;
    wqe.control.segments = sizeof wqe / 16;
    wqe.remote.address = address;
    wqe.remote.rkey = kPagedKey;
    wqe.atomic.swap_add = 1;
    wqe.data.byte_count = 8;
    wqe.data.lkey = kKey;
    wqe.data.address = a().buffer;
    const auto bytes = std::as_bytes(std::span(&wqe, 1));
    a().post_raw({bytes.begin(), bytes.end()}, true);
    return a().wait_status(kSendCqn);
  };
  const std::uint64_t cut = (kIova + kPage) / 8 * 8;
  ASSERT_NE(cut, kIova + kPage);
  EXPECT_EQ(add_to(cut + 8, 0), CqeSyndrome::success);
  EXPECT_EQ(add_to(cut, 1), CqeSyndrome::remote_access_error);
}

TEST_F(Pages, AreCheckedWhenTheRegionIsMade) {
  lend(b());
  EXPECT_EQ(make(b(), kPagedKey, kPage, 11), CommandStatus::bad_parameter);
  EXPECT_EQ(make(b(), kPagedKey, kPage, 31), CommandStatus::bad_parameter);
  // 64 entries are mapped, and the region begins at entry 5
  EXPECT_EQ(make(b(), kPagedKey, 60 * kPage), CommandStatus::bad_parameter);
  EXPECT_EQ(make(b(), kPagedKey, 59 * kPage), CommandStatus::ok);
  abi::MapIcm unmap;
  unmap.header.opcode = std::uint16_t(abi::CommandOpcode::unmap_icm);
  unmap.table = std::uint32_t(abi::IcmTable::mtt);
  unmap.count = 64;
  EXPECT_EQ(b().command(unmap), CommandStatus::resource_busy);
  EXPECT_EQ(destroy(b(), kPagedKey), CommandStatus::ok);
  EXPECT_EQ(b().command(unmap), CommandStatus::ok);
  EXPECT_EQ(make(b(), kPagedKey, kPage), CommandStatus::bad_parameter);
}

// The entries are used again with other pages, while accesses with the old region may be at any step.
TEST_F(Pages, OfARegionThatIsGoneAreForgotten) {
  for (const std::uint32_t l1 : {0u, 4096u}) {
    for (int delay = 0; delay < 30; ++delay) {
      SCOPED_TRACE(testing::Message() << "l1 " << l1 << " delay " << delay);
      build(with_caches(l1 == 0 ? 0 : 128, l1));
      connect(5);
      lend(b());
      const auto first = b().host.allocate(kPages * kPage), second = b().host.allocate(kPages * kPage);
      write_entries(b(), first, backwards);
      ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
      a().fill(1);
      a().post_send({.opcode = SendOpcode::write, .length = kPages * kPage, .remote = Remote{kIova, kPagedKey}});
      run(0.2 * delay);
      ASSERT_EQ(destroy(b(), kPagedKey), CommandStatus::ok);
      write_entries(b(), second, forwards);
      ASSERT_EQ(make(b(), kPagedKey + 1), CommandStatus::ok);
      const auto status = a().wait_status(kSendCqn, 10_ms);
      EXPECT_TRUE(status == CqeSyndrome::success || status == CqeSyndrome::remote_access_error) << int(status);
      // The old key must write no byte to the new region's memory.
      const auto untouched = [&](std::uint64_t memory) {
        return std::all_of(b().host.at(memory), b().host.at(memory) + kPages * kPage,
                           [](std::byte byte) { return byte == std::byte{0}; });
      };
      EXPECT_TRUE(untouched(second));
      const std::vector<std::byte> old(b().host.at(first), b().host.at(first) + kPages * kPage);
      for (auto* node : {&a(), &b()}) {
        node->modify(abi::QpState::reset, 0);
        node->restart();
      }
      connect(5);
      a().post_send({.opcode = SendOpcode::write, .length = kPages * kPage, .remote = Remote{kIova, kPagedKey + 1}});
      EXPECT_EQ(a().wait_status(kSendCqn, 10_ms), CqeSyndrome::success);
      EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(second), kPages * kPage), 0);
      EXPECT_EQ(std::memcmp(old.data(), b().host.at(first), old.size()), 0);
    }
  }
}

// Slow translations do not delay one another, and a reset discards writes that wait for them.
TEST_F(Pages, AResetLeavesUnwrittenWhatWaitsForATranslation) {
  auto params = with_caches(0, 0);
  params.contexts.mtt.miss_slots = 1;
  build(params);
  connect(5);
  lend(b());
  const auto memory = b().host.allocate(kPages * kPage);
  write_entries(b(), memory, backwards);
  ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
  a().fill(1);
  const auto written = [&] {
    return std::count_if(b().host.at(memory), b().host.at(memory) + kPages * kPage,
                         [](std::byte byte) { return byte != std::byte{0}; });
  };
  for (int i = 0; i < 12; ++i)
    a().post_send({.opcode = SendOpcode::write, .length = kPages * kPage, .remote = Remote{kIova, kPagedKey}});
  while (written() == 0) run(0.1);
  ASSERT_EQ(b().modify(abi::QpState::reset, 0), CommandStatus::ok);
  b().host.landed.clear();
  run(20);
  for (const auto& [address, at] : b().host.landed)
    EXPECT_FALSE(address >= memory && address < memory + kPages * kPage) << address - memory;
}

class UnderWay : public Pages {
 protected:
  void SetUp() override {
    build({});
    lend(b());
    write_entries(b(), kOld, forwards);
  }
  PageTable& pages() { return b().nic.blocks().contexts.pages; }
  void look(std::uint32_t page) {
    Duration wait;
    if (const auto here = pages().touch(kFirst + page, wait)) return found_.push_back({here, false});
    pages().await(kFirst + page, [this](const PageTable::Found& found) { found_.push_back(found); });
  }

  static constexpr std::uint64_t kOld = 0x10000000, kNew = 0x20000000;
  std::vector<PageTable::Found> found_;
};

TEST_F(UnderWay, AFillIsOfNoUseToWhoCameBeforeOrAfterTheFlush) {
  look(2);
  pages().flush(kFirst, kPages);
  write_entries(b(), kNew, forwards);
  look(2);
  EXPECT_TRUE(found_.empty());
  run(5);
  ASSERT_EQ(found_.size(), 2u);
  for (const auto& found : found_) {
    EXPECT_FALSE(found.page);
    EXPECT_TRUE(found.flushed);
  }
  look(2);
  run(5);
  ASSERT_EQ(found_.size(), 3u);
  EXPECT_EQ(found_[2].page, kNew + 2 * kPage);
  EXPECT_EQ(pages().counters().misses, 3u);
}

TEST_F(UnderWay, AFlushOfOtherPagesChangesNothing) {
  look(2);
  pages().flush(kFirst + 3, 1u << 20);
  pages().flush(kFirst, 2);
  run(5);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].page, kOld + 2 * kPage);
  for (const std::uint32_t count : {1u, 1u << 20}) {
    pages().flush(kFirst + 2, count);
    look(2);
    EXPECT_EQ(found_.size(), count == 1 ? 1u : 2u) << "kept in spite of a flush";
    run(5);
  }
}

// A table with one slot for misses: a region's walk waits behind another's.
TEST_F(UnderWay, WhoseRegionIsMadeAnewIsRefusedAndTheNewOneServed) {
  ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
  std::vector<Translated> answers;
  const auto translate = [&](std::uint32_t key) {
    b().nic.blocks().translation.translate({kPd, 0}, {key, kIova, kPages * kPage},
                                           [&](const Translated& answer) { answers.push_back(answer); });
  };
  translate(kPagedKey);
  run(1);  // some pages are translated
  EXPECT_TRUE(answers.empty());
  auto& contexts = b().nic.blocks().contexts;
  // The effects of destroy_mpt and create_mpt, at once.
  contexts.regions.destroy(kPagedKey >> 8);
  pages().flush(kFirst, kPages);
  write_entries(b(), kNew, forwards);
  MemoryRegion region{.valid = true,
                      .key = kPagedKey + 1,
                      .pd = kPd,
                      .pasid = kPasid,
                      .start = kIova,
                      .length = kPages * kPage,
                      .log_page = 12,
                      .first_page = kFirst};
  contexts.regions.create(kPagedKey >> 8, region);
  contexts.page_ranges[kPagedKey >> 8] = {kFirst, kPages};
  translate(kPagedKey + 1);
  run(20);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].result, AccessResult::bad_key);
  EXPECT_EQ(answers[1].result, AccessResult::ok);
  ASSERT_EQ(answers[1].ranges.size(), 1u);
  EXPECT_EQ(answers[1].ranges[0].address, kNew);
  EXPECT_EQ(answers[1].ranges[0].length, kPages * kPage);
}

// Pages in the second level cost its latency, only once.
TEST_F(UnderWay, TheSecondLevelCostsItsLatency) {
  build(with_caches(1, 4096));
  lend(b());
  write_entries(b(), kOld, forwards);
  ASSERT_EQ(make(b(), kPagedKey), CommandStatus::ok);
  const auto translate = [&](std::uint32_t page) {
    const AccessRequest request{kPd, 0};
    const Region region{kPagedKey, kIova + page * kPage, 1};
    Duration done = now();
    Translated known;
    if (b().nic.blocks().translation.translate_now(request, region, known)) return known.wait;
    const auto start = now();
    b().nic.blocks().translation.translate(request, region, [&](const Translated&) { done = now(); });
    run(5);
    return done - start;
  };
  translate(0);
  translate(1);
  const auto latency = b().nic.blocks().contexts.pages.counters().l1_hits;
  EXPECT_EQ(translate(0), CacheParams{}.l1_latency);
  EXPECT_EQ(translate(0), Duration{});
  EXPECT_EQ(translate(1), CacheParams{}.l1_latency);
  EXPECT_EQ(b().nic.blocks().contexts.pages.counters().l1_hits, latency + 2);
  EXPECT_EQ(b().nic.blocks().contexts.pages.counters().misses, 2u);
  EXPECT_EQ(b().nic.blocks().contexts.pages.counters().lookups, 5u);
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Rules for TLPs that pass one another on PCIe: table 2-40 of the Base Specification, for writes and reads with and
// without the relaxed ordering attribute.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/timing/dma_bench.h"

namespace rnicsim::nic::test::relaxed_ordering {
namespace {

using namespace rnicsim::literals;

DmaParams quiet() {
  DmaParams params;
  params.read_queueing = {};
  return params;
}

// Limited posted credits: a write that is sent, a write that waits for its second header credit, and a write of 64
// bytes behind both; all at time 0.
DmaParams one_header() {
  auto params = quiet();
  params.posted_headers = 2;
  return params;
}

struct Behind {
  Duration waiting, last;
  Counter overtakings;
};
Behind behind_a_stalled_write(bool waiting_relaxed, bool last_relaxed) {
  DmaBench bench(one_header());
  std::size_t waiting = 0, last = 0;
  bench.at({}, [&] {
    bench.write(0, 64);
    waiting = bench.write(4096, 512, waiting_relaxed);  // two headers; one credit is free
    last = bench.write(8192, 64, last_relaxed);
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  return {bench.accesses[waiting].done, bench.accesses[last].done, bench.dma().counters().overtakings};
}

TEST(RelaxedWrite, PassesAWriteThatWaitsForCredits) {
  const auto found = behind_a_stalled_write(false, true);
  EXPECT_LT(found.last, found.waiting);
  EXPECT_EQ(found.overtakings, 1u);
  // It is sent as soon as the link is free, without waiting.
  const PcieLink link(quiet().link);
  EXPECT_EQ(found.last, 2 * link.time_for(link.write(0, 64)) + quiet().write_latency);
}

TEST(RelaxedWrite, IsNotPassedByOneThatIsStrict) {
  for (const bool waiting_relaxed : {false, true}) {
    const auto found = behind_a_stalled_write(waiting_relaxed, false);
    EXPECT_GT(found.last, found.waiting);
    EXPECT_EQ(found.overtakings, 0u);
  }
}

// A relaxed write needs its own credits.
TEST(RelaxedWrite, WaitsForCreditsOfItsOwn) {
  auto params = quiet();
  params.posted_headers = 1;
  DmaBench bench(params);
  bench.at({}, [&] {
    bench.write(0, 64);
    bench.write(4096, 64);
    bench.write(8192, 64, true);
  });
  bench.run();
  EXPECT_LT(bench.accesses[0].done, bench.accesses[1].done);
  EXPECT_LT(bench.accesses[1].done, bench.accesses[2].done);
  EXPECT_EQ(bench.dma().counters().overtakings, 0u);
}

// A waiting write is passed at most 64 times.
TEST(RelaxedWrite, DoesNotStarveOthers) {
  DmaBench bench(one_header());
  std::size_t waiting = 0;
  bench.at({}, [&] {
    bench.write(0, 64);
    waiting = bench.write(4096, 512);
  });
  // One write whenever a credit may be free, so that two credits are never free.
  for (int i = 0; i < 2000; ++i) bench.at(10_ns * i, [&] { bench.write(8192, 64, true); });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  const auto ahead = std::ranges::count_if(
      bench.accesses, [&](const auto& access) { return access.done < bench.accesses[waiting].done; });
  EXPECT_LE(ahead, 1 + 64);
}

// --- A host that keeps writes in order: each must complete before the next.
DmaParams slow_order(Duration each) {
  auto params = quiet();
  params.ordered_write = each;
  return params;
}

// Landing times of five writes to separate addresses; `last_relaxed`: the fifth has the attribute.
std::vector<Duration> five_writes(Duration each, bool last_relaxed, bool adjoining = false) {
  DmaBench bench(slow_order(each));
  bench.at({}, [&] {
    for (std::uint64_t i = 0; i < 5; ++i) bench.write(i * (adjoining ? 64 : 4096), 64, i == 4 && last_relaxed);
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  std::vector<Duration> landed;
  for (const auto& access : bench.accesses) landed.push_back(access.done);
  return landed;
}

TEST(OrderedWrites, LandOneAfterTheOther) {
  const PcieLink link(quiet().link);
  const auto service = link.time_for(link.write(0, 64));
  const auto first = service + quiet().write_latency;
  auto landed = five_writes({}, false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(landed[std::size_t(i)], first + i * service);
  landed = five_writes(100_ns, false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(landed[std::size_t(i)], first + i * 100_ns);
  landed = five_writes(100_ns, false, true);  // adjoining addresses
  for (int i = 0; i < 5; ++i) EXPECT_EQ(landed[std::size_t(i)], first + i * service);
}

TEST(OrderedWrites, ARelaxedOneDoesNotWaitForThem) {
  const PcieLink link(quiet().link);
  const auto landed = five_writes(100_ns, true);
  EXPECT_EQ(landed[4], 5 * link.time_for(link.write(0, 64)) + quiet().write_latency);
  EXPECT_GT(landed[3], landed[4]);
  // Without that cost the relaxed write lands at its usual time.
  EXPECT_EQ(five_writes({}, true), five_writes({}, false));
}

// Credits return with the write that used them, and not behind writes that land later.
TEST(OrderedWrites, ARelaxedOneGivesItsCreditsBack) {
  auto params = slow_order(1_us);
  params.posted_headers = 3;
  DmaBench bench(params);
  bench.at({}, [&] {
    bench.write(0, 64);
    bench.write(4096, 64);
    bench.write(8192, 64, true);
    bench.write(12288, 64, true);  // no header credit is left
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  EXPECT_LT(bench.accesses[3].done, bench.accesses[1].done);
}

// A strict read sees the relaxed write, and the writes that it passed.
TEST(OrderedWrites, AStrictReadIsBehindThemAll) {
  DmaBench bench(slow_order(1_us));
  bench.at({}, [&] {
    bench.write_slot(0, 7, false);
    bench.write_slot(100, 7, false);
    bench.write_slot(200, 7, false, true);
    bench.expect_no_older(0, 7);
    bench.expect_no_older(100, 7);
    bench.expect_no_older(200, 7);
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  EXPECT_EQ(bench.too_old, 0);
}

// --- Reads.
TEST(RelaxedRead, DoesNotWaitForTheWritesAhead) {
  for (const bool relaxed : {false, true}) {
    auto params = quiet();
    params.write_latency = 5_us;
    DmaBench bench(params);
    std::size_t read = 0;
    bench.at({}, [&] {
      bench.write(0, 64);
      read = bench.read_relaxed(0, 64, relaxed);
    });
    bench.run();
    const PcieLink link(params.link);
    const auto ends = link.time_for(link.completion(0, 64)) + params.read_internal;
    const auto write = link.time_for(link.write(0, 64));
    const auto idle = write + link.time_for(link.read_request(0, 64)) + params.read_latency + ends;
    EXPECT_EQ(bench.accesses[read].done, relaxed ? idle : write + params.write_latency + ends);
  }
}

TEST(RelaxedRead, PassesAWriteThatWaitsForCredits) {
  for (const bool relaxed : {false, true}) {
    auto params = quiet();
    params.posted_headers = 1;
    DmaBench bench(params);
    bench.at({}, [&] {
      bench.write(0, 64);
      bench.write(4096, 64);
      bench.read_relaxed(8192, 64, relaxed);
    });
    bench.run();
    const auto issued = std::ranges::find(bench.issued, 8192u, &DmaBench::Issued::address)->at;
    EXPECT_EQ(issued == Duration{}, relaxed);
  }
}

// A relaxed read may return data older than the write ahead of it; a strict read may not.
TEST(RelaxedRead, MayFindWhatWasThereBefore) {
  for (const bool relaxed : {false, true}) {
    auto params = quiet();
    params.write_latency = 5_us;
    DmaBench bench(params);
    bench.at({}, [&] {
      bench.write_slot(3, 77, false);
      bench.expect_no_older(3, 77, relaxed);
    });
    bench.run();
    EXPECT_EQ(bench.too_old, relaxed ? 1 : 0);
  }
}

// --- The end of all earlier writes.
TEST(AfterWrites, ComesWhenAllBeforeHaveLanded) {
  for (const bool stalled : {false, true}) {
    auto params = slow_order(200_ns);
    if (stalled) params.posted_headers = 1;
    DmaBench bench(params);
    Duration told, last;
    bench.at({}, [&] {
      for (std::uint64_t i = 0; i < 3; ++i) bench.write(i * 4096, 64, i == 1);
      EXPECT_EQ(bench.dma().landing() == Agenda::kNever, stalled);
      bench.dma().after_writes(bench.dma().closure([&](AccessResult result, const Payload&) {
        EXPECT_EQ(result, AccessResult::ok);
        told = now();
      }));
      bench.write(65536, 64);
    });
    bench.run();
    EXPECT_EQ(bench.unfinished(), 0u);
    for (int i = 0; i < 3; ++i) last = std::max(last, bench.accesses[std::size_t(i)].done);
    EXPECT_EQ(told, last);
    EXPECT_EQ(bench.dma().counters().writes, 4u);
    EXPECT_EQ(bench.dma().counters().to_host_tlps, 4u);
  }
}

}  // namespace
}  // namespace rnicsim::nic::test::relaxed_ordering

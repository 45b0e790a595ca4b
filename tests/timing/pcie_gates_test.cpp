// SPDX-License-Identifier: Apache-2.0
// Conditions that delay a DMA access, and the exact end of the delay: tags, bytes, posted credits, ordering, load of
// the host.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/timing/dma_bench.h"
#include "tests/timing/tlp_oracle.h"

namespace rnicsim::nic::test::pcie_gates {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kRequest = 512;  // bytes; MRRS: one tag

DmaParams quiet() {
  DmaParams params;
  params.read_queueing = {};
  return params;
}

// Reads of one tag each at time 0, up to one more than the limit: issue time of the last, completion time of the first
// two.
struct LastOne {
  Duration issued;
  Duration first_done;
  Duration second_done;
  Counter stalls;
};
LastOne last_of_reads(const DmaParams& params, int before, std::uint32_t last_bytes) {
  DmaBench bench(params);
  bench.at({}, [&] {
    for (int i = 0; i < before; ++i) bench.read(std::uint64_t(i) * kRequest, kRequest);
    bench.read(65536, last_bytes);
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  return {bench.issued.back().at, bench.accesses[0].done, bench.accesses[1].done, bench.dma().counters().read_stalls};
}

TEST(Tags, TheNextReadWaitsForExactlyOneCompletion) {
  auto params = quiet();
  params.read_tags = 4;
  const auto held = last_of_reads(params, 4, 64);
  EXPECT_EQ(held.issued, held.first_done);
  EXPECT_EQ(held.stalls, 1u);
  params.read_tags = 5;
  EXPECT_EQ(last_of_reads(params, 4, 64).issued, Duration{});
  EXPECT_EQ(last_of_reads(params, 4, 64).stalls, 0u);
}

TEST(Tags, ARequestOfTwoTagsWaitsForTwoCompletions) {
  auto params = quiet();
  params.read_tags = 4;
  const auto held = last_of_reads(params, 4, 2 * kRequest);
  EXPECT_EQ(held.issued, held.second_done);
  params.read_tags = 5;
  const auto half = last_of_reads(params, 4, 2 * kRequest);
  EXPECT_EQ(half.issued, half.first_done);
  params.read_tags = 6;
  EXPECT_EQ(last_of_reads(params, 4, 2 * kRequest).issued, Duration{});
}

// The smallest DMA unit, with every position of a request boundary.
TEST(Tags, OneTagIsEnoughForAnything) {
  for (const std::uint32_t bytes : {1u, 8u, 64u, 65u, 512u, 4096u, 5000u}) {
    for (std::uint64_t offset = 448; offset <= 512; offset += 8) {
      auto params = quiet();
      params.read_tags = 1;
      DmaBench bench(params);
      bench.at({}, [&] { bench.read(offset, bytes); });
      bench.run();
      EXPECT_EQ(bench.unfinished(), 0u) << bytes << " bytes at " << offset;
    }
  }
}

TEST(ReadBytes, TheLimitIsExactToAByte) {
  auto params = quiet();
  params.read_bytes = {4 * kRequest};
  const auto held = last_of_reads(params, 4, 1);
  EXPECT_EQ(held.issued, held.first_done);
  params.read_bytes = {4 * kRequest + 64};
  EXPECT_EQ(last_of_reads(params, 4, 64).issued, Duration{});
  const auto one_more = last_of_reads(params, 4, 65);
  EXPECT_EQ(one_more.issued, one_more.first_done);
}

TEST(ReadBytes, ALongReadGoesInPartsAndIsOne) {
  auto params = quiet();
  params.read_bytes = {4096};
  DmaBench bench(params);
  bench.at({}, [&] { bench.read(0, 16384); });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  EXPECT_EQ(bench.dma().counters().reads, 1u);
  EXPECT_EQ(bench.dma().counters().read_bytes, 16384u);
}

// Writes of 64 bytes at time 0, then one more: times of issue and landing.
std::vector<DmaBench::Issued> writes(const DmaParams& params, int count, std::uint32_t last_bytes = 64) {
  DmaBench bench(params);
  bench.at({}, [&] {
    for (int i = 0; i + 1 < count; ++i) bench.write(std::uint64_t(i) * 4096, 64);
    bench.write(65536, last_bytes);
  });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  return bench.issued;
}

TEST(PostedCredits, HeadersComeBackWhenAWriteHasLanded) {
  auto params = quiet();
  params.posted_headers = 4;
  auto issued = writes(params, 5);
  EXPECT_EQ(issued[3].at, Duration{});
  EXPECT_EQ(issued[4].at, issued[0].done);
  issued = writes(params, 5, 512);  // two headers
  EXPECT_EQ(issued[4].at, issued[1].done);
  params.posted_headers = 5;
  EXPECT_EQ(writes(params, 5)[4].at, Duration{});
}

TEST(PostedCredits, DataCreditsAreOf16Bytes) {
  auto params = quiet();
  params.posted_data = {256};
  auto issued = writes(params, 5, 1);
  EXPECT_EQ(issued[3].at, Duration{});
  EXPECT_EQ(issued[4].at, issued[0].done);
  params.posted_data = {256 + 16};
  EXPECT_EQ(writes(params, 5, 16)[4].at, Duration{});
  issued = writes(params, 5, 17);
  EXPECT_EQ(issued[4].at, issued[0].done);
  params.posted_data = {256 + 15};
  issued = writes(params, 5, 1);
  EXPECT_EQ(issued[4].at, issued[0].done);
}

TEST(PostedCredits, AWriteOfMoreThanAllGoesWhenItHasThemAll) {
  auto params = quiet();
  params.posted_data = {256};
  const auto issued = writes(params, 3, 4096);
  EXPECT_EQ(issued[2].at, issued[1].done);
}

// Two writes with credit for one header, then a read, all at time 0.
struct Mixed {
  Duration read, stalled_write, first_landing;
};
Mixed behind_a_stalled_write(bool relaxed, bool ordered = false) {
  auto params = quiet();
  params.posted_headers = 1;
  params.relaxed_ordering = relaxed;
  DmaBench bench(params);
  bench.at({}, [&] {
    bench.write(0, 64);
    bench.write(4096, 64);
    bench.read(8192, 64, ordered);
  });
  bench.run();
  Mixed found{};
  for (const auto& access : bench.issued) {
    if (access.address == 0) found.first_landing = access.done;
    if (access.address == 4096) found.stalled_write = access.at;
    if (access.address == 8192) found.read = access.at;
  }
  return found;
}

TEST(Ordering, AReadWaitsBehindAStalledWrite) {
  const auto strict = behind_a_stalled_write(false);
  EXPECT_EQ(strict.stalled_write, strict.first_landing);
  EXPECT_EQ(strict.read, strict.stalled_write);
}

TEST(Ordering, ARelaxedReadPassesIt) {
  const auto relaxed = behind_a_stalled_write(true);
  EXPECT_EQ(relaxed.stalled_write, relaxed.first_landing);
  EXPECT_EQ(relaxed.read, Duration{});
}

// As the read of an atomic: it must see the previous atomic's write.
TEST(Ordering, AnOrderedReadPassesNoWrite) {
  const auto relaxed = behind_a_stalled_write(true, true);
  EXPECT_EQ(relaxed.stalled_write, relaxed.first_landing);
  EXPECT_EQ(relaxed.read, relaxed.stalled_write);
}

TEST(Ordering, AWritePassesStalledReads) {
  auto params = quiet();
  params.read_tags = 2;
  DmaBench bench(params);
  bench.at({}, [&] {
    for (int i = 0; i < 6; ++i) bench.read(std::uint64_t(i) * kRequest, kRequest);
    bench.write(65536, 64);
  });
  bench.run();
  ASSERT_TRUE(bench.issued[2].write);
  EXPECT_EQ(bench.issued[2].at, Duration{});
}

// Both sides of the rule: a write delays a following read only if the write lands later than the read would complete.
TEST(Ordering, AReadIsCompleteJustAfterTheWriteAheadOfItLanded) {
  for (const auto write_latency : {0_ns, 150_ns, 400_ns, 401_ns, 5_us}) {
    auto params = quiet();
    params.write_latency = write_latency;
    DmaBench bench(params);
    bench.at({}, [&] {
      bench.write_slot(3, 77, false);
      bench.expect_no_older(3, 77);
    });
    bench.run();
    const PcieLink link(params.link);
    const auto write = link.time_for(link.write(0, 64));
    const auto asks = link.time_for(link.read_request(0, 64));
    const auto at_host = std::max(write + asks, write + write_latency - params.read_latency);
    EXPECT_EQ(bench.too_old, 0);
    EXPECT_EQ(bench.accesses[1].done,
              at_host + params.read_latency + link.time_for(link.completion(0, 64)) + params.read_internal);
  }
}

// Packets of a message land together, at the time of the last one; a read between them must still see the earlier ones.
TEST(Ordering, WritesThatAreJoinedDoNotHideFromARead) {
  DmaBench bench(quiet());
  bench.at({}, [&] {
    bench.write_slot(0, 5, true);
    bench.expect_no_older(0, 5);
  });
  for (int i = 1; i <= 10; ++i)
    bench.at(100_ns * i, [&, i] { bench.write_slot(static_cast<std::uint32_t>(i), 5, i < 10); });
  bench.run();
  EXPECT_EQ(bench.unfinished(), 0u);
  EXPECT_EQ(bench.too_old, 0);
}

// --- Latency under load. Latency of a read of 64 bytes behind writes that keep the link to the host busy for the given
// share of the time. The writes are short, so that the remembered load hardly falls between two of them.
Duration read_under(double load, const DmaParams& params) {
  DmaBench bench(params);
  const PcieLink link(params.link);
  const auto service = link.time_for(link.write(0, 16));
  const auto period = load == 0 ? 1_us : Duration{static_cast<std::int64_t>(std::llround(double(service.ps) / load))};
  constexpr int kWrites = 8000;  // many times the window of the load's memory
  for (int i = 0; load != 0 && i < kWrites; ++i) bench.at(period * i, [&] { bench.write(0, 16); });
  // Just before the next write: the link is free.
  const auto at = load == 0 ? Duration{} : period * kWrites - 1_ps;
  std::size_t number = 0;
  bench.at(at, [&] { number = bench.read(8192, 64); });
  bench.run();
  return bench.accesses[number].done - at;
}

TEST(Queueing, FollowsItsFormula) {
  const DmaParams params;
  const auto idle = read_under(0, params);
  for (const double load : {0.1, 0.3, 0.5, 0.7, 0.8, 0.88, 0.93}) {
    const auto wait = static_cast<double>((read_under(load, params) - idle).ps) / 1000;
    const double expected = 70 * load * load * load / (1 - load);
    EXPECT_NEAR(wait, expected, 1 + expected * 0.03) << "load " << load;
  }
}

TEST(Queueing, TwiceTheIdleLatencyAt88Percent) {
  const auto loaded = static_cast<double>(read_under(0.88, {}).ps) / 1000;
  EXPECT_NEAR(loaded, 800 + 60, 40);  // plus the device's own time
}

// The influence of earlier traffic falls with time.
TEST(Queueing, WearsOffWithTime) {
  const auto read_after = [](Duration gap, int writes) {
    DmaBench bench({});
    constexpr Duration kEach = 400_ns;
    for (int i = 0; i < writes; ++i) bench.at(i * kEach, [&bench] { bench.write(0, 4096); });
    bench.at(100 * kEach + gap, [&bench] { bench.read(8192, 64); });
    bench.run();
    EXPECT_EQ(bench.unfinished(), 0u);
    return bench.issued.back().done - bench.issued.back().at;
  };
  const auto idle = read_after({}, 0);
  auto before = read_after(500_ns, 100);
  EXPECT_GT(before, idle + 10_ns);
  for (const auto gap : {1000_ns, 1900_ns, 2100_ns, 5_us, 20_us, 1_ms}) {
    const auto now_takes = read_after(gap, 100);
    EXPECT_LE(now_takes, before) << gap.ps;
    EXPECT_GE(now_takes, idle) << gap.ps;
    before = now_takes;
  }
  EXPECT_EQ(before, idle);
}

TEST(Queueing, IsBoundedWhenTheLinkIsFull) {
  auto params = DmaParams{};
  params.posted_headers = 4096;
  params.posted_data = {1 << 20};
  const auto idle = read_under(0, params);
  DmaBench bench(params);
  std::size_t number = 0;
  bench.at({}, [&] {
    for (int i = 0; i < 1000; ++i) bench.write(std::uint64_t(i) * 256, 256);
    number = bench.read(1 << 19, 64);
  });
  bench.run();
  const PcieLink link(params.link);
  const auto backlog = link.time_for(link.write(0, 256)) * 1000;
  const auto wait = static_cast<double>((bench.accesses[number].done - backlog - idle).ps) / 1000;
  EXPECT_NEAR(wait, 70 * 0.95 * 0.95 * 0.95 / 0.05, 1);
}

// --- Speed of the link.
TEST(LinkSpeed, HalfTheLanesTakeTwiceTheTime) {
  const auto transfer = [](std::uint32_t generation, std::uint32_t lanes) {
    auto params = quiet();
    params.link.generation = generation;
    params.link.lanes = lanes;
    params.read_latency = params.write_latency = params.read_internal = {};
    DmaBench bench(params);
    bench.at({}, [&] {
      bench.read(0, 4096);
      bench.write(8192, 4096);
    });
    bench.run();
    return std::pair{bench.accesses[0].done.ps, bench.accesses[1].done.ps};
  };
  for (std::uint32_t generation = 1; generation <= 5; ++generation) {
    for (std::uint32_t lanes = 16; lanes > 1; lanes /= 2) {
      const auto full = transfer(generation, lanes);
      const auto half = transfer(generation, lanes / 2);
      EXPECT_NEAR(double(half.first), 2.0 * double(full.first), 4);
      EXPECT_NEAR(double(half.second), 2.0 * double(full.second), 4);
    }
    // the line code changes after generation 2; there is no generation 6
    if (generation == 2 || generation == 5) continue;
    EXPECT_NEAR(double(transfer(generation, 16).first), 2.0 * double(transfer(generation + 1, 16).first), 4);
  }
}

}  // namespace
}  // namespace rnicsim::nic::test::pcie_gates

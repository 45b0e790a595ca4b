// SPDX-License-Identifier: Apache-2.0
// PCIe's closed forms against TLPs enumerated one by one, and the DMA unit against an oracle of each direction's link.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <numeric>

#include "tests/timing/dma_bench.h"
#include "tests/timing/tlp_oracle.h"

namespace rnicsim::nic::test {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

std::uint64_t power(std::uint32_t least, std::uint32_t most) {
  return std::uint64_t{1} << *rc::gen::inRange(least, most + 1);
}

PcieLinkParams any_link() {
  PcieLinkParams params;
  params.generation = *rc::gen::inRange(1u, 6u);
  params.lanes = static_cast<std::uint32_t>(power(0, 5));
  params.max_payload = {power(6, 12)};
  params.max_read_request = {power(6, 12)};
  params.read_completion_boundary = {power(6, 7)};
  params.request_header = {*rc::gen::inRange(0u, 65u)};
  params.completion_header = {*rc::gen::inRange(0u, 65u)};
  params.dllp_share = *rc::gen::inRange(0, 51) / 100.0;
  return params;
}

// Short, page-sized and long bursts, often next to a boundary.
std::uint64_t any_bytes() {
  return *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 130), rc::gen::inRange<std::uint64_t>(200, 5000),
                         rc::gen::inRange<std::uint64_t>(5000, 70'000));
}
std::uint64_t any_address() {
  const auto page = *rc::gen::inRange<std::uint64_t>(0, 1 << 20) * 4096;
  return page +
         *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 4096),
                         rc::gen::map(rc::gen::inRange(0, 64), [](int line) { return std::uint64_t(line) * 64; }));
}

void same(const TlpCount& closed, const std::vector<Tlp>& tlps, std::uint64_t payload) {
  const auto sum = [&](auto member) {
    return std::accumulate(tlps.begin(), tlps.end(), std::uint64_t{0},
                           [&](std::uint64_t all, const Tlp& tlp) { return all + tlp.*member; });
  };
  RC_ASSERT(sum(&Tlp::payload) == payload);
  RC_ASSERT(closed.tlps == tlps.size());
  RC_ASSERT(closed.bytes == sum(&Tlp::on_link));
}

}  // namespace

RC_GTEST_PROP(PcieClosedForms, CountWhatTheRulesEnumerate, ()) {
  const auto params = any_link();
  const PcieLink link(params);
  const TlpRules rules(params);
  const auto address = any_address();
  const auto bytes = any_bytes();
  same(link.write(address, bytes), rules.write(address, bytes), bytes);
  same(link.read_request(address, bytes), rules.requests(address, bytes), bytes);
  same(link.completion(address, bytes), rules.completions(address, bytes), bytes);
  SerialLink serial(link.rate());
  RC_ASSERT(serial.carry({}, rules.write(address, bytes)) == link.time_for(link.write(address, bytes)));
  const auto most = *rc::gen::inRange(0, 64);
  const TlpCount any{1, *rc::gen::inRange<std::uint64_t>(0, ~0ull >> most)};
  RC_ASSERT(link.time_for(any) == link.rate().time_for({any.bytes}));
}

RC_GTEST_PROP(PcieClosedForms, NoTlpIsAgainstTheRules, ()) {
  const auto params = any_link();
  const TlpRules rules(params);
  const auto address = any_address();
  const auto bytes = any_bytes();
  for (const auto& tlp : rules.write(address, bytes)) {
    RC_ASSERT(tlp.payload <= params.max_payload.bytes);
    RC_ASSERT(tlp.payload == 0 || tlp.address / 4096 == (tlp.address + tlp.payload - 1) / 4096);
  }
  for (const auto& request : rules.requests(address, bytes)) {
    RC_ASSERT(request.payload <= params.max_read_request.bytes);
    RC_ASSERT(request.payload == 0 || request.address / 4096 == (request.address + request.payload - 1) / 4096);
    const auto answers = rules.completions(request);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      RC_ASSERT(answers[i].payload <= params.max_payload.bytes);
      const auto end = answers[i].address + answers[i].payload;
      const auto boundary = std::min(params.max_payload.bytes, params.read_completion_boundary.bytes);
      RC_ASSERT(i + 1 == answers.size() || end % boundary == 0);
    }
  }
}

RC_GTEST_PROP(PcieClosedForms, TheRateIsThatOfItsLanes, ()) {
  const auto params = any_link();
  const auto rate = static_cast<double>(PcieLink(params).rate().bits_per_second);
  RC_ASSERT(std::abs(rate - TlpRules(params).bits_per_second()) <= 1);
  auto half = params;
  half.lanes = params.lanes / 2;
  if (half.lanes != 0) RC_ASSERT(std::abs(2 * static_cast<double>(PcieLink(half).rate().bits_per_second) - rate) <= 2);
  auto next = params;
  ++next.generation;
  const bool doubles = params.generation != 2 && params.generation < 5;
  if (doubles) RC_ASSERT(std::abs(static_cast<double>(PcieLink(next).rate().bits_per_second) - 2 * rate) <= 2);
}

// --- The DMA unit.
namespace {

struct Planned {
  Duration gap;  // time after the previous access
  bool write;
  std::uint64_t offset;
  std::uint32_t bytes;
};

rc::Gen<Planned> planned(std::int64_t longest_gap) {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::int64_t>(0, longest_gap), rc::gen::arbitrary<bool>(),
                     rc::gen::inRange<std::uint64_t>(0, 8192), rc::gen::inRange<std::uint32_t>(0, 5000)),
      [](const auto& values) {
        const auto [gap, write, offset, bytes] = values;
        return Planned{{gap}, write, offset, bytes};
      });
}

DmaParams unlimited() {
  DmaParams params;
  params.read_queueing = {};
  params.read_tags = params.posted_headers = 1 << 30;
  params.read_bytes = params.posted_data = {1 << 30};
  return params;
}

void agrees_with_the_oracle(const DmaParams& params, const std::vector<Planned>& plan) {
  DmaBench bench(params);
  DmaOracle oracle(params);
  std::vector<Duration> expected;
  Duration at;
  for (const auto& access : plan) {
    at += access.gap;
    bench.at(at, [&bench, access] {
      access.write ? bench.write(access.offset, access.bytes) : bench.read(access.offset, access.bytes);
    });
    expected.push_back(access.write ? oracle.write(at, access.offset, access.bytes)
                                    : oracle.read(at, access.offset, access.bytes));
  }
  bench.run();
  RC_ASSERT(bench.accesses.size() == plan.size());
  for (std::size_t i = 0; i < plan.size(); ++i) RC_ASSERT(bench.accesses[i].done == expected[i]);
  const auto& counters = bench.dma().counters();
  RC_ASSERT(counters.to_host_busy_ps == static_cast<Counter>(oracle.to_host.busy.ps));
  RC_ASSERT(counters.to_device_busy_ps == static_cast<Counter>(oracle.to_device.busy.ps));
  RC_ASSERT(counters.to_host_tlps == oracle.to_host.tlps);
  RC_ASSERT(counters.to_host_bytes == oracle.to_host.bytes);
  RC_ASSERT(counters.to_device_tlps == oracle.to_device.tlps);
  RC_ASSERT(counters.to_device_bytes == oracle.to_device.bytes);
  RC_ASSERT(counters.read_stalls + counters.write_stalls == 0u);
}

}  // namespace

RC_GTEST_PROP(DmaAgainstTheOracle, AScheduleWithoutStalls, ()) {
  auto params = unlimited();
  params.link = any_link();
  params.read_latency = {*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
  params.write_latency = {*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
  params.read_internal = {*rc::gen::inRange<std::int64_t>(0, 100'000)};
  const auto longest = *rc::gen::element<std::int64_t>(1, 10'000, 1'000'000);
  agrees_with_the_oracle(params, *rc::gen::container<std::vector<Planned>>(planned(longest)));
}

// With waits for tags, bytes or credits the link still carries the same TLPs, and every access completes once, in
// order.
RC_GTEST_PROP(DmaAgainstTheOracle, StallsChangeNoTlp, ()) {
  DmaParams params;
  params.link = any_link();
  params.read_tags = *rc::gen::inRange(1u, 12u);
  params.read_bytes = {*rc::gen::inRange(64u, 9000u)};
  params.posted_headers = *rc::gen::inRange(1u, 12u);
  params.posted_data = {*rc::gen::inRange(64u, 9000u)};
  params.relaxed_ordering = *rc::gen::arbitrary<bool>();
  const auto plan = *rc::gen::container<std::vector<Planned>>(planned(100'000));
  DmaBench bench(params);
  TlpRules rules(params.link);
  std::uint64_t written_tlps = 0, written_bytes = 0, read_bytes = 0;
  Duration at;
  for (const auto& access : plan) {
    at += access.gap;
    bench.at(at, [&bench, access] {
      access.write ? bench.write(access.offset, access.bytes) : bench.read(access.offset, access.bytes);
    });
    if (access.write) written_tlps += rules.write(access.offset, access.bytes).size();
    (access.write ? written_bytes : read_bytes) += access.bytes;
  }
  bench.run();
  RC_ASSERT(bench.accesses.size() == plan.size());
  Duration last_read, last_write;
  for (const auto& access : bench.accesses) {
    RC_ASSERT(access.times_done == 1);
    auto& last = access.write ? last_write : last_read;
    RC_ASSERT(access.done >= last);
    last = access.done;
  }
  const auto& counters = bench.dma().counters();
  const auto reads =
      static_cast<Counter>(std::ranges::count_if(plan, [](const auto& access) { return !access.write; }));
  RC_ASSERT(counters.reads == reads);
  RC_ASSERT(counters.writes == plan.size() - reads);
  RC_ASSERT(counters.read_bytes == read_bytes);
  RC_ASSERT(counters.write_bytes == written_bytes);
  RC_ASSERT(counters.errors == 0u);
}

// A read never returns data older than the writes before it, however writes are joined and delayed.
RC_GTEST_PROP(DmaOrder, AReadSeesTheWritesBeforeIt, ()) {
  DmaParams params;
  params.read_latency = {*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
  params.write_latency = {*rc::gen::inRange<std::int64_t>(0, 2'000'000)};
  params.read_tags = *rc::gen::inRange(1u, 12u);
  params.posted_headers = *rc::gen::inRange(1u, 40u);
  struct Step {
    std::int64_t gap;
    int kind;  // 0: read; 1: write; 2: write that continues in the next one
    std::uint32_t slot;
  };
  const auto steps = *rc::gen::container<std::vector<Step>>(rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::int64_t>(0, 300'000), rc::gen::inRange(0, 5), rc::gen::inRange(0u, 4u)),
      [](const auto& values) {
        const auto [gap, kind, slot] = values;
        return Step{gap, std::min(kind, 2), slot};
      }));
  DmaBench bench(params);
  std::vector<std::uint32_t> newest(1024);
  std::uint32_t serial = 0, next_slot = 0;
  bool goes_on = false;
  Duration at;
  for (const auto& step : steps) {
    at += Duration{step.gap};
    if (step.kind == 0) {
      bench.at(at, [&bench, &newest, slot = step.slot] { bench.expect_no_older(slot, newest[slot]); });
      continue;
    }
    const auto slot = goes_on ? next_slot : step.slot;
    goes_on = step.kind == 2 && slot < 1000;
    next_slot = slot + 1;
    bench.at(at, [&bench, &newest, slot, more = goes_on, value = ++serial] {
      newest[slot] = value;
      bench.write_slot(slot, value, more);
    });
  }
  bench.run();
  RC_ASSERT(bench.too_old == 0);
  RC_ASSERT(bench.unfinished() == 0);
}

}  // namespace rnicsim::nic::test

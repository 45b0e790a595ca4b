// SPDX-License-Identifier: Apache-2.0
// Processing units and atomic lock slots: exact service times, serial and parallel work.
#include <algorithm>
#include <map>

#include "tests/unit/nic/many_qps.h"

namespace rnicsim::nic::test {
namespace {

using abi::SendOpcode;

constexpr std::uint32_t kUnits = 8;

class Units : public ManyPairs {
 protected:
  void start(const NicParams& params, std::uint32_t count = kUnits + 1) {
    build(params, count, [](abi::Qpc& c) { c.timeout = 16; });
    for (std::uint32_t qp = 0; qp < count; ++qp)  // brings every context into its first level
      qa->post(qp, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(qp)});
    EXPECT_EQ(completions(a(), kSendCqn, static_cast<int>(count)), static_cast<int>(count));
    run(20);
    b().host.landed.clear();
  }
  // Landing times of WRITEs of 8 bytes, `each` per QP, all posted at once.
  std::vector<Duration> landings(const std::vector<std::uint32_t>& qps, int each) {
    for (int i = 0; i < each; ++i)
      for (const auto qp : qps) qa->post(qp, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(qp)});
    const auto all = each * static_cast<int>(qps.size());
    EXPECT_EQ(completions(a(), kSendCqn, all), all);
    std::vector<Duration> times;
    for (const auto& [address, at] : b().host.landed)
      if (std::ranges::any_of(qps, [&](auto qp) { return address == qb->area(qp); })) times.push_back(at);
    EXPECT_EQ(times.size(), static_cast<std::size_t>(all));
    expect_no_trouble();
    return times;
  }
  static void expect_distance(const std::vector<Duration>& times, Duration distance) {
    for (std::size_t i = 1; i < times.size(); ++i)
      EXPECT_EQ((times[i] - times[i - 1]).ps, distance.ps) << "after " << i;
  }
  static NicParams sending_in(Duration service, std::uint32_t units = kUnits) {
    NicParams params;
    params.units.write = service;
    params.units.transmit_units = units;
    return params;
  }
  static NicParams receiving_in(Duration service, std::uint32_t units = kUnits) {
    NicParams params;
    params.units.write = 1_ns;
    params.units.receive_request = service;
    params.units.receive_units = units;
    return params;
  }
  // Three QPs share two units: after every three WRITEs all QPs have had equally many.
  void expect_equal_shares() {
    const std::vector<std::uint32_t> qps{0, 1, 2};
    const auto times = landings(qps, 12);
    std::map<std::uint32_t, int> had;
    for (const auto& [address, at] : b().host.landed) {
      if (at > times[times.size() - 3]) break;
      for (const auto qp : qps)
        if (address == qb->area(qp)) ++had[qp];
      const auto [least, most] = std::ranges::minmax({had[0], had[1], had[2]});
      EXPECT_LE(most - least, 1);
    }
  }
};

TEST_F(Units, OneQpSendsOneInItsServiceTimeAndNotAPicosecondSooner) {
  for (const auto service : {1_us, 1_us - 1_ps, 333'333_ps}) {
    start(sending_in(service));
    expect_distance(landings({3}, 16), service);
  }
}

TEST_F(Units, AUnitThatIsNotTheBottleneckIsNotFelt) {
  NicParams params;
  params.port.rate = {1'000'000'000};  // a frame takes longer than any service
  start(params);
  const auto normal = landings({3}, 12);
  params.units.write += 1_ns;
  start(params);
  const auto slower = landings({3}, 12);
  EXPECT_EQ((normal.back() - normal.front()).ps, (slower.back() - slower.front()).ps);
}

TEST_F(Units, TwoQpsShareAUnitOrHaveOneEach) {
  const auto service = 1_us;
  start(sending_in(service, 1));
  expect_distance(landings({0, kUnits}, 8), service);
  start(sending_in(service));
  const auto apart = landings({0, kUnits}, 8);
  for (std::size_t i = 2; i < apart.size(); ++i) EXPECT_EQ((apart[i] - apart[i - 2]).ps, service.ps);
  EXPECT_LT((apart[1] - apart[0]).ps, (50_ns).ps);
}

TEST_F(Units, OneQpReceivesOneInItsServiceTimeAndNotAPicosecondSooner) {
  for (const auto service : {1_us, 1_us - 1_ps}) {
    start(receiving_in(service));
    expect_distance(landings({5}, 12), service);
  }
}

TEST_F(Units, TwoQpsShareAReceiveUnitOrHaveOneEach) {
  const auto service = 1_us;
  start(receiving_in(service, 1));
  expect_distance(landings({0, kUnits}, 8), service);
  start(receiving_in(service));
  const auto apart = landings({0, kUnits}, 8);
  EXPECT_EQ((apart.back() - apart.front()).ps / service.ps, 7);
  EXPECT_LT((apart[1] - apart[0]).ps, service.ps / 2);
}

TEST_F(Units, MoreQpsThanUnitsHaveEqualShares) {
  start(sending_in(1_us, 2));
  expect_equal_shares();
  start(receiving_in(1_us, 2));
  expect_equal_shares();
}

// Each 64-byte line of the payload after the first takes a unit longer.
TEST_F(Units, ALineMoreTakesAUnitLonger) {
  for (const auto& [length, lines] : {std::pair{64u, 0}, {65u, 1}, {128u, 1}, {129u, 2}}) {
    auto params = sending_in(1_us);
    params.units.line = 100_ns;
    start(params);
    for (int i = 0; i < 8; ++i) qa->post(3, {.opcode = SendOpcode::write, .length = length, .remote = remote_of(3)});
    EXPECT_EQ(completions(a(), kSendCqn, 8), 8);
    std::vector<Duration> times;
    for (const auto& [address, at] : b().host.landed)
      if (address == qb->area(3)) times.push_back(at);
    expect_distance(times, 1_us + 100_ns * lines);
  }
}

// A QP's packets arrive in the order of posting, whatever cache misses occur and whichever unit serves them.
TEST_F(Units, OrderWithinAQpOutlivesRandomMisses) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    NicParams params;
    params.contexts.qpc.l0_entries = static_cast<std::uint32_t>(seed % 2);
    params.contexts.qpc.l1_entries = static_cast<std::uint32_t>(seed % 4);
    params.contexts.qpc.ways = 2;
    params.contexts.qpc.replacement = "random";
    params.contexts.qpc.miss_slots = 1 + static_cast<std::uint32_t>(seed % 3);
    params.contexts.mpt.l0_entries = 0;
    params.contexts.mpt.l1_entries = static_cast<std::uint32_t>(seed % 2);
    params.contexts.cqc.l1_entries = static_cast<std::uint32_t>(seed % 2);
    params.units.transmit_units = params.units.receive_units = 2;
    constexpr std::uint32_t kQps = 7;
    start(params, kQps);
    auto state = seed;
    const auto below = [&](std::uint32_t limit) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::uint32_t>(state >> 33) % limit;
    };
    std::map<std::uint32_t, std::uint16_t> sent, received;
    for (std::uint32_t qp = 0; qp < kQps; ++qp) sent[qa->qpn(qp)] = 1;
    std::map<std::uint32_t, std::vector<std::uint32_t>> immediates;
    for (int round = 0; round < 12; ++round) {
      int posted = 0;
      for (int i = 0; i < 12; ++i, ++posted) {
        const auto qp = below(kQps);
        const std::uint32_t number = 1000u * static_cast<std::uint32_t>(round) + static_cast<std::uint32_t>(i);
        qb->post_receive(qp, qb->area(qp), 4096);
        qa->post(qp, {.opcode = SendOpcode::send_with_imm,
                      .length = below(2500),
                      .immediate = number,
                      .blueflame = below(2) == 0});
        immediates[qa->qpn(qp)].push_back(number);
        if (below(3) == 0) run(below(1000) / 1000.0);
      }
      for (int i = 0; i < posted; ++i) {
        const auto done = a().wait(kSendCqn, 5_ms);
        ASSERT_TRUE(done);
        EXPECT_EQ(done->wqe_counter, sent[done->qpn]++);
        const auto came = b().wait(kReceiveCqn, 5_ms);
        ASSERT_TRUE(came);
        auto& expected = immediates[came->qpn];
        EXPECT_EQ(came->wqe_counter, received[came->qpn]++);
        EXPECT_EQ(came->immediate, expected.front());
        expected.erase(expected.begin());
      }
    }
    expect_no_trouble();
  }
}

// --- Atomics.
class Locks : public Units {
 protected:
  static constexpr std::uint32_t kQps = 4;
  static constexpr int kEach = 4;  // most outstanding atomics of a QP

  void SetUp() override { start(NicParams{}, kQps); }
  // Each QP adds 1 `kEach` times, at where(qp).
  template <class Where>
  std::vector<Duration> additions(Where&& where) {
    b().host.landed.clear();
    for (int i = 0; i < kEach; ++i)
      for (std::uint32_t qp = 0; qp < kQps; ++qp)
        qa->post(qp, {.opcode = SendOpcode::fetch_add, .length = 8, .remote = where(qp), .immediate = 1});
    const auto all = kEach * static_cast<int>(kQps);
    EXPECT_EQ(completions(a(), kSendCqn, all), all);
    std::vector<Duration> times;
    for (const auto& [address, at] : b().host.landed)
      if (address >= b().buffer && address < b().buffer + Node::kBufferBytes) times.push_back(at);
    EXPECT_EQ(times.size(), static_cast<std::size_t>(all));
    return times;
  }
  // A slot is held for the read, the service and the issue of the write.
  static Duration period() {
    const DmaParams dma;
    const PcieLink link(dma.link);
    return link.time_for(link.write(0, 8)) + link.time_for(link.read_request(0, 8)) + dma.read_latency +
           link.time_for(link.completion(0, 8)) + dma.read_internal + AtomicParams{}.service;
  }
};

TEST_F(Locks, OneAddressIsOneAfterTheOther) {
  expect_distance(additions([&](std::uint32_t) { return at_b(64); }), period());
  EXPECT_EQ(b().host.get<std::uint64_t>(b().buffer + 64), kQps * std::uint64_t{kEach});
  EXPECT_EQ(b().nic.counters().atomics.conflicts, kQps * kEach - 1u);
}

TEST_F(Locks, AStrideOf4KiBIsOneSlot) {
  expect_distance(additions([&](std::uint32_t qp) { return at_b(64 + 4096 * qp); }), period());
}

TEST_F(Locks, OtherSlotsGoSideBySide) {
  const auto times = additions([&](std::uint32_t qp) { return at_b(64 + 8 * qp); });
  EXPECT_EQ(times.size(), 16u);
  for (std::size_t i = 1; i < kQps; ++i) EXPECT_LT((times[i] - times[0]).ps, period().ps / 2);
  EXPECT_LT((times.back() - times.front()).ps, (period() * 6).ps);
}

// Two regions over the same memory: their keys reach a byte at different offsets.
TEST_F(Locks, OneAddressByTwoKeysLosesNothing) {
  constexpr std::uint32_t kOther = 9 << 8 | 0x21;
  b().register_memory(kOther, b().buffer + 40, 4096, 0xf);
  additions([&](std::uint32_t qp) { return Remote{b().buffer + 64, qp % 2 == 0 ? kKey : kOther}; });
  EXPECT_EQ(b().host.get<std::uint64_t>(b().buffer + 64), kQps * std::uint64_t{kEach});
}

}  // namespace
}  // namespace rnicsim::nic::test

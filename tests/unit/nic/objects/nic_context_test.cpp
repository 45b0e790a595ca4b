// SPDX-License-Identifier: Apache-2.0
// Eviction of contexts: with very small caches every transfer is right, timers and commands find their QP, and a miss
// costs the time of its read.
#include <string>

#include "model/nic/contexts/atomic_unit.h"
#include "model/nic/nic.h"
#include "model/nic/nic_params.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "tests/unit/nic/many_qps.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::QpState;
using abi::SendOpcode;

NicParams with_qpc(std::uint32_t l0, std::uint32_t l1) {
  NicParams params;
  params.contexts.qpc.l0_entries = l0;
  params.contexts.qpc.l1_entries = l1;
  params.contexts.qpc.ways = 1;
  return params;
}

void expect_sum(const CacheCounters& cache) { EXPECT_EQ(cache.lookups, cache.l0_hits + cache.l1_hits + cache.misses); }

class Contexts : public ManyPairs {
 protected:
  // Every operation, several at a time, on all QPs in turn; receives and bytes are checked.
  void mixed_load(int rounds) {
    constexpr std::uint32_t kBytes = 3000;
    for (int round = 0; round < rounds; ++round) {
      a().fill(round);
      b().fill(round + 100);
      for (std::uint32_t i = 0; i < qa->count(); ++i) {
        qb->post_receive(i, qb->area(i) + 4096, 4096);
        qa->post(i, {.opcode = SendOpcode::write, .length = kBytes, .remote = remote_of(i)});
        qa->post(i, {.opcode = SendOpcode::send, .length = kBytes, .blueflame = false});
        qb->post(i, {.opcode = SendOpcode::read,
                     .length = 700,
                     .remote = Remote{qa->area(i) + 5000, kKey},
                     .address = qb->area(i) + 7200});
      }
      const auto count = static_cast<int>(qa->count());
      ASSERT_EQ(completions(a(), kSendCqn, 2 * count), 2 * count);
      ASSERT_EQ(completions(b(), kSendCqn, count), count);
      ASSERT_EQ(completions(b(), kReceiveCqn, count), count);
      for (std::uint32_t i = 0; i < qa->count(); ++i) {
        ASSERT_EQ(std::memcmp(a().host.at(qa->area(i)), b().host.at(qb->area(i)), kBytes), 0) << i;
        ASSERT_EQ(std::memcmp(a().host.at(qa->area(i)), b().host.at(qb->area(i) + 4096), kBytes), 0) << i;
        ASSERT_EQ(std::memcmp(a().host.at(qa->area(i) + 5000), b().host.at(qb->area(i) + 7200), 700), 0) << i;
      }
    }
  }
  void expect_counters_add_up() {
    for (auto* node : {&a(), &b()}) {
      const auto contexts = node->nic.counters().contexts;
      for (const auto* cache : {&contexts.qpc, &contexts.cqc, &contexts.mpt, &contexts.mtt}) expect_sum(*cache);
      const auto misses = contexts.qpc.misses + contexts.cqc.misses + contexts.mpt.misses + contexts.mtt.misses;
      EXPECT_LE(contexts.fills, misses);  // a miss may join a fill in progress
    }
  }
};

TEST_F(Contexts, TransfersAreRightWithHardlyAnyQpEntries) {
  const std::pair<std::uint32_t, std::uint32_t> sizes[] = {{1, 2}, {0, 0}, {0, 1}, {1, 1}, {1, 5}};
  for (const auto& [l0, l1] : sizes) {
    SCOPED_TRACE("l0 " + std::to_string(l0) + ", l1 " + std::to_string(l1));
    build(with_qpc(l0, l1), 12);
    mixed_load(4);
    expect_no_trouble();
    expect_counters_add_up();
    const auto contexts = b().nic.counters().contexts;
    EXPECT_GT(contexts.qpc.misses, 12u);
    EXPECT_GT(contexts.fills, 0u);
    EXPECT_GT(contexts.write_backs, contexts.fills / 2);
    EXPECT_EQ(contexts.qpc.l0_hits != 0, l0 != 0);
    if (l1 == 0) {
      EXPECT_EQ(contexts.qpc.l1_hits, 0u);
    }
  }
}

TEST_F(Contexts, TransfersAreRightWhenEveryCacheIsTiny) {
  for (const std::uint32_t entries : {0u, 1u, 2u}) {
    for (const std::uint32_t slots : {1u, 4u}) {
      for (const bool relaxed : {false, true}) {
        SCOPED_TRACE(testing::Message() << entries << " entries, " << slots << " slots, relaxed " << relaxed);
        NicParams params;
        for (auto* cache : {&params.contexts.qpc, &params.contexts.cqc, &params.contexts.mpt, &params.contexts.mtt}) {
          cache->l0_entries = entries / 2;
          cache->l1_entries = entries;
          cache->ways = 1;
          cache->miss_slots = slots;
        }
        params.dma.relaxed_ordering = relaxed;
        if (relaxed) {  // reads overtake wherever they may
          params.dma.posted_headers = 2;
          params.dma.write_latency = 3_us;
          params.dma.read_latency = 50_ns;
        }
        build(params, 8, [](abi::Qpc& c) { c.timeout = 14; });
        mixed_load(3);
        expect_no_trouble();
        expect_counters_add_up();
        EXPECT_GT(b().nic.counters().contexts.cqc.misses, 0u);
        EXPECT_GT(b().nic.counters().contexts.mpt.misses + (entries > 0), 0u);
      }
    }
  }
}

// A packet found its QP on the device and waits for its receive unit; meanwhile the QP is evicted.
TEST_F(Contexts, AQpWhosePacketWaitsForItsUnitIsNotLost) {
  for (const std::uint32_t entries : {0u, 1u, 2u}) {
    auto params = with_qpc(0, entries);
    params.units.receive_units = 1;
    params.units.receive_request = 1500_ns;
    params.units.receive_response = 1100_ns;
    build(params, 10, [](abi::Qpc& c) { c.timeout = 14; });
    mixed_load(2);
    expect_no_trouble();
  }
}

TEST_F(Contexts, AnAtomicReadAndReceiveUnderWayKeepTheirQp) {
  for (const std::uint32_t entries : {0u, 1u}) {
    auto params = with_qpc(0, entries);
    params.atomics.service = 5_us;  // longer than several fills
    build(params, 6, [](abi::Qpc& c) { c.timeout = 14; });
    const std::uint64_t zero = 0;
    for (std::uint32_t i = 0; i < 6; ++i) b().host.put(qb->area(i), zero);
    for (int round = 0; round < 5; ++round)
      for (std::uint32_t i = 0; i < 6; ++i)
        qa->post(i, {.opcode = SendOpcode::fetch_add, .length = 8, .remote = remote_of(i), .immediate = i + 1});
    ASSERT_EQ(completions(a(), kSendCqn, 30), 30);
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(b().host.get<std::uint64_t>(qb->area(i)), 5u * (i + 1));
    expect_no_trouble();
  }
}

// The first atomic's region must be fetched, or comes from the second level; the second atomic's is cached. Swaps that
// depend on one another show the order.
TEST_F(Contexts, AtomicsOfAQpKeepTheirOrder) {
  constexpr std::uint32_t kOther = 9 << 8 | 0x21;
  for (const std::uint32_t l1 : {1u, 64u}) {
    NicParams params;
    params.contexts.mpt.l0_entries = 1;
    params.contexts.mpt.l1_entries = l1;
    build(params, 1);
    b().register_memory(kOther, b().buffer, Node::kBufferBytes, 0xf);
    const auto swap = [&](std::uint32_t key, std::uint64_t compare, std::uint64_t value) {
      b().nic.blocks().atomic_unit.execute(
          {.tag = ~0ull,
           .qpn = {qb->qpn(0)},
           .pd = kPd,
           .is_swap = true,
           .operation = {.address = b().buffer + 64, .rkey = {key}, .swap_add = value, .compare = compare}});
    };
    b().host.put(b().buffer + 64, std::uint64_t{0});
    swap(kOther, 99, 99);
    run(5);
    swap(kKey, 99, 99);  // takes the only entry of the first level
    run(5);
    swap(kOther, 0, 1);
    swap(kKey, 1, 2);
    swap(kOther, 2, 3);
    swap(kKey, 3, 4);
    run(10);
    EXPECT_EQ(b().host.get<std::uint64_t>(b().buffer + 64), 4u) << l1 << " entries";
  }
}

TEST_F(Contexts, CommandsFindEvictedQps) {
  for (const std::uint32_t entries : {0u, 1u}) {
    build(with_qpc(0, entries), 6);
    mixed_load(1);
    for (std::uint32_t i = 0; i < 6; ++i) {
      const auto expected = qa->attributes(i, 2, qa->qpn(i));
      const auto found = qa->query(i);
      EXPECT_EQ(found.state, QpState::rts);
      EXPECT_EQ(found.remote_qpn, expected.remote_qpn);
      EXPECT_EQ(found.path_mtu, expected.path_mtu);
      EXPECT_EQ(found.timeout, expected.timeout);
      EXPECT_EQ(found.rnr_retry, expected.rnr_retry);
      EXPECT_EQ(found.send_cqn, kSendCqn);
      EXPECT_EQ(std::memcmp(&found.path, &expected.path, sizeof found.path), 0);
      EXPECT_EQ(found.next_send_psn, (expected.send_psn + 6) & 0xffffff);  // two messages of three packets
      EXPECT_EQ(found.oldest_unacked_psn, found.next_send_psn);
    }
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(qa->modify(i, QpState::sqd), abi::CommandStatus::ok);
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(qa->query(i).state, QpState::sqd);
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(qa->modify(i, QpState::rts), abi::CommandStatus::ok);
    mixed_load(1);
    EXPECT_EQ(qa->modify(2, QpState::reset), abi::CommandStatus::ok);
    EXPECT_EQ(qa->query(2).state, QpState::reset);
    for (std::uint32_t i = 0; i < 6; ++i)
      EXPECT_EQ(qa->command(i, abi::CommandOpcode::destroy_qp), abi::CommandStatus::ok);
    for (std::uint32_t i = 0; i < 6; ++i)
      EXPECT_EQ(qa->command(i, abi::CommandOpcode::query_qp), abi::CommandStatus::bad_resource);
    expect_no_trouble();
  }
}

TEST_F(Contexts, TimersFindEvictedQps) {
  for (const std::uint32_t entries : {0u, 1u}) {
    build(with_qpc(0, entries), 6);
    // RNR: no receive is posted; ACK: the first packet of each QP is lost.
    int frames = 0;
    drop() = [&](const Frame&) { return ++frames % 3 == 0 && frames < 30; };
    a().fill(4);
    for (std::uint32_t i = 0; i < 6; ++i) qa->post(i, {.opcode = SendOpcode::send, .length = 500});
    run(30);
    for (std::uint32_t i = 0; i < 6; ++i) qb->post_receive(i, qb->area(i) + 4096, 4096);
    ASSERT_EQ(completions(a(), kSendCqn, 6, 40_ms), 6);
    ASSERT_EQ(completions(b(), kReceiveCqn, 6), 6);
    for (std::uint32_t i = 0; i < 6; ++i)
      EXPECT_EQ(std::memcmp(a().host.at(qa->area(i)), b().host.at(qb->area(i) + 4096), 500), 0);
    EXPECT_GT(a().nic.counters().engine.rnr_nak_retry_err, 0u);
    EXPECT_GT(a().nic.counters().engine.local_ack_timeout_err, 0u);
    EXPECT_EQ(a().nic.counters().engine.wrong_state, 0u);
    EXPECT_EQ(b().nic.counters().engine.wrong_state, 0u);
  }
}

// The timer expires while the QP's context is being fetched for the ACK that the timer waits for.
TEST_F(Contexts, ATimerThatExpiredBehindItsAckIsVoid) {
  int late = 0;
  for (auto answer = 8_us; answer < 10_us; answer += 50_ns) {
    auto params = with_qpc(0, 0);
    params.contexts.qpc.miss_slots = 8;
    params.units.receive_request = 1_ns;
    params.dma.read_latency = 1200_ns;
    params.dma.write_latency = answer - 5_us;              // the ACK is sent when the payload is in memory
    build(params, 1, [](abi::Qpc& c) { c.timeout = 1; });  // 8.192 us
    Duration acked, asked;
    a().nic.blocks().rx.received.subscribe([&](const PacketTrace&) { acked = now(); });
    a().nic.blocks().tx.sent.subscribe([&](const PacketTrace&) {
      if (asked == Duration{}) asked = now();
    });
    qa->post(0, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(0)});
    run(4);
    run(16);
    const bool in_time = acked - asked < 8192_ns + 100_ns;
    if (!in_time) continue;
    late += acked - asked > 7_us;
    EXPECT_EQ(a().nic.counters().engine.local_ack_timeout_err, 0u) << "answered after " << to_string(acked - asked);
    ASSERT_EQ(completions(a(), kSendCqn, 1), 1);
  }
  EXPECT_GT(late, 0);
}

// --- Cost of a miss. All other contexts are cached.
class MissCost : public ManyPairs {
 protected:
  void start(const NicParams& params) {
    p = params;
    build(params, 1, [](abi::Qpc& c) { c.path_mtu = 5; });
    for (int i = 0; i < 2; ++i) {
      qa->post(0, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(0)});
      run(30);
    }
    EXPECT_EQ(completions(a(), kSendCqn, 2), 2);
    a().host.landed.clear();
    b().host.landed.clear();
  }
  // Times from the doorbell until the payload has landed, and until the CQE has landed.
  std::pair<Duration, Duration> write() {
    const auto begun = now();
    qa->post(0, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(0)});
    run(30);
    const auto when = [&](Node& node, auto&& is) {
      for (const auto& [address, at] : node.host.landed)
        if (is(address)) return at - begun;
      return Duration{};
    };
    const auto payload = when(b(), [&](std::uint64_t at) { return at == qb->area(0); });
    const auto cqe = a().poll(kSendCqn);
    EXPECT_TRUE(cqe);
    // Rings lie below the buffers, and contexts before them: only the CQE has these bytes.
    Duration completed;
    for (const auto& [address, at] : a().host.landed)
      if (a().host.get<abi::Cqe>(address).qpn == qa->qpn(0) && a().host.get<abi::Cqe>(address).wqe_counter == 2u)
        completed = at - begun;
    return {payload, completed};
  }
  Duration read(std::uint64_t bytes) const {
    const PcieLink link(p.dma.link);
    return link.time_for(link.read_request(0, bytes)) + link.time_for(link.completion(0, bytes)) + p.dma.read_latency +
           p.dma.read_internal;
  }
  NicParams p;
};

TEST_F(MissCost, OfAQpIsARead) {
  start({});
  const auto [warm, warm_cqe] = write();
  start(with_qpc(0, 0));
  const auto [cold, cold_cqe] = write();
  EXPECT_EQ((cold - warm).ps, 2 * read(256).ps);          // the sender's doorbell, the receiver's packet
  EXPECT_EQ((cold_cqe - warm_cqe).ps, 3 * read(256).ps);  // and the ACK
}

TEST_F(MissCost, OfAQpWithMoreLinesIsALongerRead) {
  auto params = with_qpc(0, 0);
  start(params);
  const auto [four, four_cqe] = write();
  params.contexts.qpc.fill_lines = 8;
  start(params);
  const auto [eight, eight_cqe] = write();
  const PcieLink link(p.dma.link);
  // Two reads at once: the second one's request is sent while the first is in progress.
  const auto more = link.time_for(link.completion(0, 256));
  EXPECT_NEAR(double((eight - four).ps), double(2 * more.ps),
              double(2 * link.time_for(link.read_request(0, 64)).ps) + 1);
}

TEST_F(MissCost, OfAQpInTheSecondLevelIsItsLatency) {
  start({});
  const auto [warm, warm_cqe] = write();
  auto params = with_qpc(0, 64);
  params.contexts.qpc.l1_latency = 47_ns;
  start(params);
  const auto [second, second_cqe] = write();
  // At sender and receiver the latency adds to the unit's service: nothing waits for it.
  EXPECT_EQ(second, warm);
  EXPECT_EQ(second_cqe, warm_cqe);
}

TEST_F(MissCost, OfACqIsARead) {
  start({});
  const auto warm = write().second;
  NicParams params;
  params.contexts.cqc.l1_entries = params.contexts.cqc.l0_entries = 0;
  start(params);
  EXPECT_EQ((write().second - warm).ps, read(64).ps);
  params.contexts.cqc.l1_entries = 64;
  start(params);
  EXPECT_EQ((write().second - warm).ps, params.contexts.cqc.l1_latency.ps);
}

// The sender gathers; the receiver checks the range, then places the packet. Without a cache entry, the context that
// the check fetched still serves the placement, which follows at once.
TEST_F(MissCost, OfARegionInTheSecondLevelIsItsLatencyEachTime) {
  start({});
  const auto warm = write().first;
  NicParams params;
  params.contexts.mpt.l0_entries = 0;
  start(params);
  EXPECT_EQ((write().first - warm).ps, 3 * params.contexts.mpt.l1_latency.ps);
}

TEST_F(MissCost, OfARegionIsAReadEachTime) {
  start({});
  const auto warm = write().first;
  NicParams params;
  params.contexts.mpt.l0_entries = params.contexts.mpt.l1_entries = 0;
  start(params);
  EXPECT_EQ((write().first - warm).ps, 2 * read(64).ps);
  const auto mpt = a().nic.counters().contexts.mpt;
  EXPECT_EQ(mpt.misses, 3u);  // two of the earlier WRITE
  expect_sum(mpt);
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Packets that congestion control delays, and packets that it does not delay. The control allows one packet of a queue
// pair every 5 us.
#include <algorithm>
#include <map>
#include <vector>

#include "model/base/policy.h"
#include "model/nic/nic.h"
#include "model/nic/packets/packet_tx.h"
#include "model/roce/congestion.h"
#include "tests/unit/nic/many_qps.h"

namespace rnicsim::nic::test {
namespace {

using abi::SendOpcode;
using roce::CongestionControl;

constexpr auto kGap = 5_us;
constexpr auto kSlack = 20_ns;  // payload is read after the turn, in varying time

// A control whose rate gives every packet the same time, whatever its size.
class Metronome final : public CongestionControl {
 public:
  roce::Allowance allowance(Duration) override { return {.rate = rate_}; }
  void sent(std::uint32_t bytes, Duration) override { rate_ = 8e12 * bytes / static_cast<double>(kGap.ps); }

 private:
  double rate_ = roce::Allowance::kUnlimited;
};
const PolicyEntry<CongestionControl> kEntry{
    "metronome",
    [](const PolicyParams*, BitRate) -> std::unique_ptr<CongestionControl> { return std::make_unique<Metronome>(); }};

class Congestion : public ManyPairs {
 protected:
  void start(NicParams params, std::uint32_t count, const char* control = "metronome") {
    params.congestion.control.name = control;
    build(params, count, [](abi::Qpc& c) { c.timeout = 16; });
    for (auto* node : {&a(), &b()})
      node->nic.blocks().tx.sent.subscribe([this, node](const PacketTrace& packet) {
        const auto& row = roce::info(packet.headers.bth.opcode);
        const bool held = !row.response() || !packet.payload.empty();
        (held ? held_ : free_)[node][packet.qpn.value].push_back(now());
      });
  }
  void write(std::uint32_t qp, std::uint32_t bytes = 8) {
    qa->post(qp, {.opcode = SendOpcode::write, .length = bytes, .remote = remote_of(qp)});
  }
  void complete(int count) { EXPECT_EQ(completions(a(), kSendCqn, count), count); }
  // Departure times of packets under congestion control, and of acknowledgements.
  const std::vector<Duration>& held(Node& node, std::uint32_t qp) { return held_[&node][qa->qpn(qp)]; }
  const std::vector<Duration>& free(Node& node, std::uint32_t qp) { return free_[&node][qa->qpn(qp)]; }
  static void expect_gaps(const std::vector<Duration>& times) {
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE((times[i] - times[i - 1] + kSlack).ps, kGap.ps) << i;
  }

 private:
  std::map<Node*, std::map<std::uint32_t, std::vector<Duration>>> held_, free_;
};

TEST_F(Congestion, AQueuePairWaitsAndOthersGoOn) {
  start({}, 2);
  for (int i = 0; i < 8; ++i)
    for (const std::uint32_t qp : {0u, 1u}) write(qp);
  complete(16);
  for (const std::uint32_t qp : {0u, 1u}) {
    ASSERT_EQ(held(a(), qp).size(), 8u);
    expect_gaps(held(a(), qp));
    EXPECT_LT((held(a(), qp).back() - held(a(), qp).front()).ps, (7 * (kGap + kSlack)).ps);
  }
  EXPECT_LT(held(a(), 1).front().ps, held(a(), 0)[1].ps);
  expect_no_trouble();
}

TEST_F(Congestion, EachPacketOfAMessageWaits) {
  start({}, 1);
  write(0, 4000);  // packets of 1024 bytes
  complete(1);
  EXPECT_EQ(held(a(), 0).size(), 4u);
  expect_gaps(held(a(), 0));
}

TEST_F(Congestion, AReadsResponseWaitsAtTheOtherEnd) {
  start({}, 1);
  qa->post(0, {.opcode = SendOpcode::read, .length = 4000, .remote = remote_of(0)});
  complete(1);
  EXPECT_EQ(held(b(), 0).size(), 4u);
  expect_gaps(held(b(), 0));
  expect_no_trouble();
}

// Both ends write. Each acknowledges the other's packets long before its own next packet.
TEST_F(Congestion, AcknowledgementsDoNotWait) {
  start({}, 1);
  for (int i = 0; i < 8; ++i) {
    write(0);
    qb->post(0, {.opcode = SendOpcode::write, .length = 8, .remote = Remote{qa->area(0), kKey}});
  }
  complete(8);
  expect_gaps(held(b(), 0));
  ASSERT_EQ(free(b(), 0).size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_LT((free(b(), 0)[i] - held(a(), 0)[i]).ps, (2_us).ps) << i;
}

// Payload of consecutive packets reaches memory within a write's latency. A packet that asks for an acknowledgement
// gets it at its own time, and not at that of the message's last packet: controls measure this time.
TEST_F(Congestion, EachPacketOfABurstIsAcknowledgedAtItsTime) {
  NicParams params;
  params.congestion.ack_every = 1;
  start(params, 1, "timely");
  constexpr std::uint32_t kPackets = 32;
  write(0, kPackets * 1024);
  complete(1);
  const auto &requests = held(a(), 0), &answers = free(b(), 0);
  ASSERT_EQ(requests.size(), kPackets);
  EXPECT_GT(answers.size(), kPackets / 2);
  EXPECT_LT((answers.front() - requests.front()).ps, (1500_ns).ps);
}

// A context that a delayed queue pair needs is not evicted.
TEST_F(Congestion, HeldBackQueuePairsAreEvictedAfterwards) {
  NicParams params;
  params.contexts.qpc.l0_entries = 0;
  params.contexts.qpc.l1_entries = 2;
  params.contexts.qpc.ways = 2;
  constexpr std::uint32_t kQps = 7;
  start(params, kQps);
  for (int i = 0; i < 6; ++i)
    for (std::uint32_t qp = 0; qp < kQps; ++qp) write(qp);
  complete(6 * kQps);
  for (std::uint32_t qp = 0; qp < kQps; ++qp) {
    EXPECT_EQ(held(a(), qp).size(), 6u);
    expect_gaps(held(a(), qp));
  }
  EXPECT_GT(a().nic.counters().contexts.qpc.evictions, 0u);
  expect_no_trouble();
}

// A reset discards delayed packets and their waiting time.
TEST_F(Congestion, AResetForgetsWhatWaited) {
  start({}, 1);
  for (int i = 0; i < 4; ++i) write(0);
  run(2);
  EXPECT_EQ(held(a(), 0).size(), 1u);
  EXPECT_EQ(qa->modify(0, abi::QpState::reset), abi::CommandStatus::ok);
  run(50);
  EXPECT_EQ(held(a(), 0).size(), 1u);
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Floods of CNPs: does a CNP slow down only the queue pair of the peer that sends it, and is the memory limited?
#include <cstring>
#include <functional>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/nic_counters.h"
#include "model/nic/packets/notification_point.h"
#include "model/nic/packets/packet.h"
#include "tests/unit/nic/congested_pair.h"

namespace rnicsim::nic::test {
namespace {

class CnpFlood : public NicCongestion {
 protected:
  static constexpr int kFlood = 100'000;
  static constexpr int kMessages = 1500;  // take about as long as the flood
  static constexpr auto kCable = 90_ns;
  // More than the 54 ns of a receive unit: a faster flood of any packets fills the receive buffer.
  static constexpr auto kApart = 120_ns;

  struct Kind {
    const char* name;
    std::function<void(Packet&, int)> change;  // by the CNP's number
    Counter EngineCounters::*counter;          // counts each CNP; nullptr: a counter of another block does
  };

  // Time of `messages` WRITEs of 64 KiB from a to b, while each of `flood` CNPs comes to a; at least the flood's time.
  Duration time_beside(const Kind& kind, int flood, int messages) {
    const auto begin = now();
    int sent = 0, done = 0;
    a().post_send({.opcode = SendOpcode::write, .length = 1 << 16, .remote = at_b()});
    Duration finished{};
    while (done < messages || sent < flood) {
      if (sent < flood) a().nic.receive(cnp(kind, sent++), kCable);
      sc_core::sc_start(static_cast<double>(kApart.ps), sc_core::SC_PS);
      for (; a().poll(kSendCqn); finished = now()) {
        if (++done < messages) a().post_send({.opcode = SendOpcode::write, .length = 1 << 16, .remote = at_b()});
      }
    }
    run(5);  // the last CNPs pass the pipeline
    return finished - begin;
  }
  Frame cnp(const Kind& kind, int number) const {
    auto packet = Packet::make();
    packet->headers.bth.opcode = roce::Opcode::cnp;
    packet->headers.bth.destination = {kQpn};
    packet->addresses = cnps_.front().addresses;
    packet->put(Payload(16));
    kind.change(*packet, number);
    packet->seal(0, false);
    return Frame(packet);
  }
  // One marked WRITE shows the addresses of the peer's CNPs.
  void start_with_one_cnp() {
    bool first = true;
    cnps_.clear();
    start([first]() mutable { return std::exchange(first, false); });
    write(1);
    run(3000);  // the rate of the queue pair is back at the line's
    ASSERT_EQ(cnps_.size(), 1u);
  }
};

TEST_F(CnpFlood, OfStrangersChangesNothing) {
  const Kind kinds[] = {
      {"another source", [](Packet& packet, int number) { packet.addresses.source[14] ^= 1 + number % 200; },
       &EngineCounters::rp_cnp_ignored},
      {"no such queue pair", [](Packet& packet, int number) { packet.headers.bth.destination = {0x100u + number}; },
       &EngineCounters::unknown_qp},
      {"another source and DSCP",
       [](Packet& packet, int number) {
         packet.addresses.source[15] ^= 9;
         packet.addresses.traffic_class = static_cast<std::uint8_t>(number);
       },
       &EngineCounters::rp_cnp_ignored},
      {"wrong P_Key", [](Packet& packet, int) { packet.headers.bth.pkey = 0x7123; }, nullptr},
  };
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.name);
    start_with_one_cnp();
    const auto handled = heard().rp_cnp_handled;
    const auto alone = time_beside(kind, 0, kMessages);
    const auto before = heard();
    const auto bad = a().nic.counters().rx.bad_pkey;
    const auto beside = time_beside(kind, kFlood, kMessages);
    EXPECT_EQ(heard().rp_cnp_handled, handled);
    if (kind.counter != nullptr)
      EXPECT_EQ(heard().*kind.counter - before.*kind.counter, Counter{kFlood});
    else
      EXPECT_EQ(a().nic.counters().rx.bad_pkey - bad, Counter{kFlood});
    EXPECT_EQ(a().nic.counters().receive_buffer.rx_discards_phy, 0u);
    EXPECT_LT(20 * beside.ps, 21 * alone.ps);
    EXPECT_EQ(a().nic.counters().notification.np_cnp_sent, 0u);
  }
}

// The peer itself may slow its queue pair down to the least rate. The queue pair recovers afterwards.
TEST_F(CnpFlood, OfThePeerSlowsItsOwnQueuePairOnly) {
  const Kind kind{"the peer's", [](Packet&, int) {}, &EngineCounters::rp_cnp_handled};
  start_with_one_cnp();
  const auto alone = time_beside(kind, 0, 200);
  const auto before = heard();
  const auto beside = time_beside(kind, kFlood, 200);
  EXPECT_GT(beside, 5 * alone);
  EXPECT_EQ(heard().rp_cnp_handled - before.rp_cnp_handled, Counter{kFlood});
  run(200'000);
  EXPECT_LT(20 * time_beside(kind, 0, 200).ps, 21 * alone.ps);
}

// A queue pair that neither sends nor responds ignores CNPs.
TEST_F(CnpFlood, ForAQueuePairInErrorOrInitChangesNothing) {
  start_with_one_cnp();
  const Kind kind{"the peer's", [](Packet&, int) {}, &EngineCounters::rp_cnp_ignored};
  for (const auto state : {abi::QpState::error, abi::QpState::reset, abi::QpState::init}) {
    abi::Qpc c;
    c.port = 1;
    const auto mask =
        state == abi::QpState::init ? abi::qp_attr::kPkeyIndex | abi::qp_attr::kPort | abi::qp_attr::kAccessFlags : 0;
    ASSERT_EQ(a().modify(state, mask, c), abi::CommandStatus::ok);
    const auto before = heard();
    for (int i = 0; i < 1000; ++i) {
      a().nic.receive(cnp(kind, i), kCable);
      run(0.12);
    }
    run(20);
    EXPECT_EQ(heard().rp_cnp_handled, before.rp_cnp_handled);
    EXPECT_EQ(heard().rp_cnp_ignored - before.rp_cnp_ignored, 1000u);
  }
}

// Marked packets from ever new addresses: memory has a limit, and each address gets its CNP.
TEST_F(NicCongestion, TheNotificationPointRemembersALimitedNumberOfAddresses) {
  start();
  NotificationParams params;
  params.moderation = "ip";
  params.min_time_between_cnps = 1_s;
  NotificationPoint point(params, PriorityMap());
  int sent = 0;
  point.cnp.bind([&](PacketOut&&) { ++sent; });
  const auto see = [&](std::uint32_t number) {
    CongestionSeen seen{};
    std::memcpy(seen.to.destination.data(), &number, sizeof number);
    point.see(seen);
  };
  for (std::uint32_t i = 0; i < 100'000; ++i) see(i);
  EXPECT_EQ(sent, 100'000);
  EXPECT_EQ(point.remembered(), NotificationPoint::kMostKeys);
  see(99'999);
  EXPECT_EQ(sent, 100'000);  // remembered: no CNP before its time
  see(0);
  EXPECT_EQ(sent, 100'001);  // no longer remembered
}

}  // namespace
}  // namespace rnicsim::nic::test

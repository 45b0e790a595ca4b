// SPDX-License-Identifier: Apache-2.0
// Packets to the own device bypass the cable, and are treated by the transport as any others.
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/receive/flow_table.h"

#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet.h"
#include "model/nic/packets/packet_tx.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::SendOpcode;

Frame frame_of(std::size_t bytes, std::uint64_t id) { return Frame::of(Payload(bytes), {}, {}, id); }

TEST(Loopback, FramesGoOneAfterAnotherAtItsRate) {
  sc_core::sc_get_curr_simcontext()->reset();
  Loopback loopback("loopback", {.rate = 80_Gbps, .latency = 50_ns});
  struct Seen {
    std::uint64_t frame;
    Duration left, delay;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  std::vector<Duration> begins;
  std::vector<std::uint64_t> left;
  loopback.frame_out.bind([&](Frame&& frame, Duration delay) { seen.push_back({frame.id(), now(), delay}); });
  loopback.left.bind([&](std::uint64_t frame) { left.push_back(frame); });
  loopback.scheduled.subscribe([&](const FrameScheduled& frame) { begins.push_back(frame.begins); });
  loopback.send(frame_of(1000, 1), 170_ns, Looped::alone);
  loopback.send(frame_of(500, 2), 170_ns, Looped::copy);
  loopback.send(frame_of(100, 3), 1_us, Looped::alone);
  sc_core::sc_start(2, sc_core::SC_US);
  EXPECT_EQ(seen, (std::vector<Seen>{{1, 270_ns, 50_ns}, {2, 320_ns, 50_ns}, {3, 1010_ns, 50_ns}}));
  EXPECT_EQ(begins, (std::vector<Duration>{170_ns, 1_us}));  // the port reports a copy
  EXPECT_EQ(left, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(loopback.counters().frames, 3u);
  EXPECT_EQ(loopback.counters().bytes, 1600u);
}

TEST(Loopback, ResetForgetsWhatIsOnItsWay) {
  sc_core::sc_get_curr_simcontext()->reset();
  Loopback loopback("loopback", {});
  int out = 0;
  loopback.frame_out.bind([&](Frame&&, Duration) { ++out; });
  loopback.left.bind([](std::uint64_t) {});
  loopback.send(frame_of(1000, 1), 170_ns, Looped::alone);
  loopback.reset();
  loopback.send(frame_of(1000, 2), 0_ns, Looped::alone);
  sc_core::sc_start(2, sc_core::SC_US);
  EXPECT_EQ(out, 1);
}

// A UC or UD message completes when its packets have left: a packet that overtook others must not count for them.
TEST(Loopback, CreditsGoBackInTheOrderOfThePackets) {
  GidTable gids(2);
  MulticastTable groups({});
  gids.set(0, {.gid = {1}, .mac = {1}, .valid = true});
  const FlowTable flows({});
  PacketTx tx({}, gids, groups, flows);
  std::vector<std::uint64_t> to_cable, to_self;
  std::vector<std::uint32_t> credits;
  tx.frame.bind([&](Frame&& frame, Duration) { to_cable.push_back(frame.id()); });
  tx.looped.bind([&](Frame&& frame, Duration, Looped) { to_self.push_back(frame.id()); });
  tx.credit.bind([&](std::uint8_t, std::uint32_t packets) { credits.push_back(packets); });
  const auto send = [&](std::uint8_t remote, std::uint16_t sgid_index = 0) {
    const auto packet = Packet::make();
    packet->headers.bth.opcode = roce::Opcode::uc_send_only;
    packet->addresses = {};
    packet->addresses.destination[0] = packet->addresses.destination_mac[0] = remote;
    tx.send({{}, sgid_index, packet});
  };
  send(9);
  send(1);
  send(9, 1);  // the source GID is not valid: no frame is made
  send(9);
  EXPECT_EQ(to_cable, (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(to_self, (std::vector<std::uint64_t>{2}));
  tx.left(2);
  EXPECT_TRUE(credits.empty());
  tx.left(1);
  EXPECT_EQ(credits, (std::vector<std::uint32_t>{3}));
  tx.left(4);
  EXPECT_EQ(credits, (std::vector<std::uint32_t>{3, 1}));
}

class ToItself : public Pair {
 protected:
  void check_port() {
    EXPECT_EQ(a().nic.counters().port.tx_frames, 0u);
    EXPECT_EQ(a().nic.counters().port.rx_frames, 0u);
    EXPECT_GT(a().nic.counters().loopback.frames, 0u);
  }
};

TEST_F(ToItself, SendReadAndWrite) {
  a().connect(a(), 3);
  a().fill(1);
  a().post_receive(a().buffer + 300'000, 8192);
  a().post_send({.opcode = SendOpcode::send, .length = 5000});
  EXPECT_EQ(a().wait_status(kReceiveCqn), abi::CqeSyndrome::success);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  a().post_send({.opcode = SendOpcode::write, .length = 100'000, .remote = Remote{a().buffer + 400'000, kKey}});
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  a().post_send({.opcode = SendOpcode::read,
                 .length = 3000,
                 .remote = Remote{a().buffer, kKey},
                 .address = a().buffer + 600'000});
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  const auto same = [&](std::uint64_t at, std::size_t bytes) {
    return std::equal(a().host.at(a().buffer), a().host.at(a().buffer) + bytes, a().host.at(at));
  };
  EXPECT_TRUE(same(a().buffer + 300'000, 5000));
  EXPECT_TRUE(same(a().buffer + 400'000, 100'000));
  EXPECT_TRUE(same(a().buffer + 600'000, 3000));
  check_port();
}

// More packets than credits: every credit must return.
TEST_F(ToItself, CreditsComeBack) {
  NicParams params;
  params.tx.queue_packets = 2;
  build(params);
  a().connect(a(), 1);
  for (int i = 0; i < 5; ++i) {
    a().post_send({.opcode = SendOpcode::write, .length = 20'000, .remote = Remote{a().buffer + 400'000, kKey}});
    EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  }
  check_port();
}

// A frame on the cable that arrives after the device's own frame was sent before it.
TEST_F(ToItself, BesideWhatComesByCable) {
  a().connect(a(), 3);
  b().connect(a(), 3, [](abi::Qpc& c) { c.remote_qpn = kQpn + 1; });  // no such QP: dropped after the pipeline
  b().post_send({.opcode = SendOpcode::write, .length = 200'000, .remote = Remote{a().buffer, kKey}});
  for (int i = 0; i < 5; ++i) {
    a().post_send({.opcode = SendOpcode::write, .length = 50'000, .remote = Remote{a().buffer + 400'000, kKey}});
    EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  }
  EXPECT_GT(a().nic.counters().port.rx_frames, 0u);
  EXPECT_GT(a().nic.counters().rx.packets, a().nic.counters().port.rx_frames);
}

TEST_F(ToItself, FasterThanByCableAndNoFasterThanItsRate) {
  const auto time_of = [&](std::uint32_t bytes, const Remote& remote) {
    const auto begun = now();
    a().post_send({.opcode = SendOpcode::write, .length = bytes, .remote = remote});
    while (!a().poll(kSendCqn)) sc_core::sc_start(1, sc_core::SC_NS);
    return now() - begun;
  };
  connect();
  const auto by_cable = time_of(8, at_b());
  build({});
  a().connect(a(), 3);
  const auto looped = time_of(8, {a().buffer + 400'000, kKey});
  const NicParams params;
  // Once in each direction: less the cable's latency, and less the wire time of bytes that do not belong to the frame.
  EXPECT_LT(looped, by_cable);
  EXPECT_GT(looped, by_cable - 2 * 90_ns - 20_ns + 2 * params.loopback.latency - 20_ns);
  EXPECT_GT(time_of(500'000, {a().buffer + 500'000, kKey}), params.loopback.rate.time_for({500'000}));
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Doorbell to CQE over two NICs: every operation, every MTU, sizes at boundaries.
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

class Transfer : public Pair {
 protected:
  bool same(std::uint64_t offset, std::uint32_t length) {
    return std::memcmp(a().host.at(a().buffer), b().host.at(b().buffer + offset), length) == 0;
  }
};

// A later doorbell includes the earlier ones: a missing doorbell shows only if it is the last.
TEST_F(Transfer, EveryDoorbellIsHeard) {
  connect();
  for (int i = 0; i < 1000; ++i) {
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b(), .blueflame = i % 3 == 0});
    ASSERT_EQ(a().wait_status(kSendCqn, 20_us), CqeSyndrome::success) << "doorbell " << i;
  }
}

TEST_F(Transfer, EverySizeAndMtu) {
  for (std::uint8_t mtu = 1; mtu <= 5; ++mtu) {
    build({});
    connect(mtu);
    const auto bytes = roce::mtu_bytes(mtu);
    for (const std::uint32_t length : {0u, 1u, bytes - 1, bytes, bytes + 1, 65536u}) {
      SCOPED_TRACE(testing::Message() << "mtu " << bytes << " length " << length);
      a().fill(length);
      b().fill(length + 1);
      a().post_send({.opcode = SendOpcode::write, .length = length, .remote = at_b(64)});
      const auto written = a().wait(kSendCqn);
      ASSERT_TRUE(written);
      EXPECT_EQ(written->syndrome, CqeSyndrome::success);
      EXPECT_EQ(written->send_opcode, SendOpcode::write);
      EXPECT_TRUE(same(64, length));

      a().post_send({.opcode = SendOpcode::read, .length = length, .remote = at_b(131072), .blueflame = false});
      EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
      EXPECT_TRUE(same(131072, length));

      a().fill(length + 2);
      b().post_receive(b().buffer + 4096, length);
      a().post_send({.opcode = SendOpcode::send_with_imm, .length = length, .immediate = 0xabcd});
      EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
      const auto received = b().wait(kReceiveCqn);
      ASSERT_TRUE(received);
      EXPECT_EQ(received->byte_count, length);
      EXPECT_EQ(received->immediate, 0xabcdu);
      EXPECT_EQ(received->opcode_owner >> 4, int(abi::CqeOpcode::receive_send_with_imm));
      EXPECT_TRUE(same(4096, length));

      b().post_receive(0, 0);
      a().post_send({.opcode = SendOpcode::write_with_imm, .length = length, .remote = at_b(300000), .immediate = 5});
      EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
      const auto notified = b().wait(kReceiveCqn);
      ASSERT_TRUE(notified);
      EXPECT_EQ(notified->byte_count, length);
      EXPECT_EQ(notified->opcode_owner >> 4, int(abi::CqeOpcode::receive_write_with_imm));
      EXPECT_TRUE(same(300000, length));
    }
    EXPECT_EQ(b().nic.counters().engine.out_of_sequence, 0u);
    EXPECT_EQ(b().nic.counters().rx.rx_icrc_encapsulated, 0u);
    EXPECT_EQ(a().nic.counters().engine.local_ack_timeout_err, 0u);
  }
}

TEST_F(Transfer, ManyInFlightBothWaysKeepTheirOrder) {
  connect(3);
  int done_a = 0, done_b = 0, received = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 8; ++i) {
      b().post_receive(b().buffer + 8192 * i, 8192);
      a().post_send({.opcode = SendOpcode::send, .length = 1500u + i, .blueflame = i % 2 == 0});
      b().post_send({.opcode = SendOpcode::read,
                     .length = 5000,
                     .remote = Remote{a().buffer + 65536, kKey},
                     .address = b().buffer + 65536});
    }
    run(40);
    while (const auto cqe = a().poll(kSendCqn)) {
      EXPECT_EQ(cqe->wqe_counter, done_a++);
      EXPECT_EQ(cqe->syndrome, CqeSyndrome::success);
    }
    while (const auto cqe = b().poll(kSendCqn)) EXPECT_EQ(cqe->wqe_counter, done_b++);
    while (const auto cqe = b().poll(kReceiveCqn)) {
      EXPECT_EQ(cqe->wqe_counter, received % 65536);
      EXPECT_EQ(cqe->byte_count, 1500u + received++ % 8);
    }
  }
  EXPECT_EQ(done_a, 320);
  EXPECT_EQ(done_b, 320);
  EXPECT_EQ(received, 320);
}

TEST_F(Transfer, UnsignaledAndNopMakeNoEntry) {
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b(), .flags = 0});
  a().post_send({.opcode = SendOpcode::nop, .flags = 0});
  a().post_send({.opcode = SendOpcode::nop});
  const auto cqe = a().wait(kSendCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->wqe_counter, 2);
  EXPECT_FALSE(a().poll(kSendCqn));
}

TEST_F(Transfer, LossIsRepaired) {
  connect(1);
  int frames = 0;
  drop() = [&](const Frame&) { return ++frames % 13 == 0; };
  for (int i = 0; i < 20; ++i) {
    a().fill(i);
    b().fill(i + 1);
    b().post_receive(b().buffer, 65536);
    a().post_send({.opcode = i % 2 ? SendOpcode::read : SendOpcode::send,
                   .length = 4000,
                   .remote = i % 2 ? std::optional(at_b()) : std::nullopt});
    EXPECT_EQ(a().wait_status(kSendCqn, 50_ms), CqeSyndrome::success);
    EXPECT_TRUE(same(0, 4000));
  }
  EXPECT_GT(a().nic.counters().engine.packet_seq_err + a().nic.counters().engine.local_ack_timeout_err, 0u);
}

// The idle latency of docs/timing.md, from the doorbell at the device; data not inline.
class Latency : public Transfer {
 protected:
  void SetUp() override {
    Transfer::SetUp();
    connect(5);
    warm_up();
  }
  void warm_up() {
    for (int i = 0; i < 4; ++i) b().post_receive(b().buffer + 4096, 64);
    a().post_send({.opcode = SendOpcode::send, .length = 8});
    run(20);
    EXPECT_TRUE(a().poll(kSendCqn));
    EXPECT_TRUE(b().poll(kReceiveCqn));
    a().host.landed.clear();
    b().host.landed.clear();
  }
  Duration frame(std::uint64_t transport) const {
    return p.port.rate.time_for({std::max<std::uint64_t>(14 + 20 + 8 + 12 + transport + 4, 60) + 24});
  }
  Duration read(std::uint64_t bytes) const {
    return link.rate().time_for({24}) + link.rate().time_for({bytes + 20}) + p.dma.read_latency + p.dma.read_internal;
  }
  Duration write(std::uint64_t bytes) const { return link.rate().time_for({bytes + 24}) + p.dma.write_latency; }
  Duration hop(std::uint64_t transport) const { return p.tx.latency + frame(transport) + 90_ns + p.rx.latency; }
  Duration cqe() const { return link.rate().time_for({64 + 24}); }
  const NicParams p;
  const PcieLink link{p.dma.link};
};

TEST_F(Latency, Write) {
  const auto start = now();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  run(10);
  ASSERT_EQ(b().host.landed.size(), 1u);
  EXPECT_EQ(b().host.landed[0].first, b().buffer);
  EXPECT_EQ((b().host.landed[0].second - start).ps, (read(8) + hop(16 + 8) + write(8)).ps);
}

TEST_F(Latency, SendEndsWithTheCqeRightBehindThePayload) {
  const auto start = now();
  a().post_send({.opcode = SendOpcode::send, .length = 8});
  run(10);
  ASSERT_EQ(b().host.landed.size(), 2u);
  EXPECT_EQ((b().host.landed[1].second - start).ps, (read(8) + hop(8) + write(8) + cqe()).ps);
}

TEST_F(Latency, Read) {
  const auto start = now();
  a().post_send({.opcode = SendOpcode::read, .length = 8, .remote = at_b()});
  run(10);
  ASSERT_EQ(a().host.landed.size(), 2u);
  EXPECT_EQ((a().host.landed[1].second - start).ps, (hop(16) + read(8) + hop(4 + 8) + write(8) + cqe()).ps);
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// resize_cq on the device: the next CQE is written to the new ring, at its position and with the right owner bit.
#include "model/nic/queues/command_unit.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::SendOpcode;

class Resize : public Pair {
 protected:
  void SetUp() override { begin({}); }

  void begin(const NicParams& params) {
    build(params);
    connect();
  }
  CommandStatus resize(std::uint64_t ring, std::uint8_t log_entries, std::uint32_t cqn = kReceiveCqn) {
    abi::ResizeCq resize;
    resize.header.opcode = std::uint16_t(abi::CommandOpcode::resize_cq);
    resize.header.object = cqn;
    resize.ring = ring;
    resize.log_entries = log_entries;
    return b().command(resize);
  }
  // A ring whose entries all belong to the device.
  std::uint64_t ring_of(std::uint8_t log_entries) {
    const auto ring = b().host.allocate(std::size_t{64} << log_entries);
    for (int i = 0; i < 1 << log_entries; ++i) b().host.at(ring + 64 * i)[63] = std::byte{abi::Cqe::kInitialOwner};
    return ring;
  }
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      b().post_receive(b().buffer, 64);
      a().post_send({.opcode = SendOpcode::send, .length = 8, .flags = abi::ControlSegment::kSignaled});
      run(10);
    }
  }
  std::uint32_t syndrome() { return b().output<abi::CommandResult>().syndrome; }
  abi::Cqe entry(std::uint64_t ring, std::uint32_t index) { return b().host.get<abi::Cqe>(ring + 64ull * index); }
};

TEST_F(Resize, GoesOnAtItsPosition) {
  send(5);
  const auto small = ring_of(3);
  ASSERT_EQ(resize(small, 3), CommandStatus::ok);
  EXPECT_EQ(b().output<abi::ResizedCq>().producer, 5u);
  send(3);
  for (const std::uint32_t position : {5u, 6u, 7u}) EXPECT_EQ(entry(small, position).opcode_owner & 1, 0) << position;
  while (b().poll(kReceiveCqn)) {}  // the first five, which are in the old ring
  const auto large = ring_of(4);
  ASSERT_EQ(resize(large, 4), CommandStatus::ok);
  EXPECT_EQ(b().output<abi::ResizedCq>().producer, 8u);
  send(2);
  EXPECT_EQ(entry(large, 8).opcode_owner & 1, 0);
  EXPECT_EQ(entry(large, 9).opcode_owner & 1, 0);
  EXPECT_EQ(entry(large, 10).opcode_owner, abi::Cqe::kInitialOwner);
}

TEST_F(Resize, SurvivesEviction) {
  NicParams params;
  params.contexts.cqc.l0_entries = 0;
  params.contexts.cqc.l1_entries = 1;
  begin(params);
  send(2);
  const auto ring = ring_of(8);
  ASSERT_EQ(resize(ring, 8), CommandStatus::ok);
  abi::CommandHeader query;
  query.opcode = std::uint16_t(abi::CommandOpcode::query_cq);
  query.object = kSendCqn;
  ASSERT_EQ(b().command(query), CommandStatus::ok);  // evicts the other CQ
  query.object = kReceiveCqn;
  ASSERT_EQ(b().command(query), CommandStatus::ok);
  const auto context = b().output<abi::QueryCq>().context;
  EXPECT_EQ(context.ring, ring);
  EXPECT_EQ(context.log_entries, 8);
  EXPECT_EQ(context.producer, 2u);
}

TEST_F(Resize, WhatIsRefused) {
  send(3);
  const auto ring = ring_of(6);
  EXPECT_EQ(resize(ring, 6, 60), CommandStatus::bad_resource);
  EXPECT_EQ(resize(ring + 8, 6), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_alignment));
  EXPECT_EQ(resize(ring, 23), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_size));
  EXPECT_EQ(resize(ring, 1), CommandStatus::bad_parameter);  // three CQEs are not consumed
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_size));
  send(1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(b().poll(kReceiveCqn)) << i;  // the old ring stays in use
}

TEST_F(Resize, ADeadOneIsRefused) {
  send((1 << kLogCqes) + 1);
  EXPECT_EQ(b().nic.counters().completion.cq_overruns, 1u);
  EXPECT_EQ(resize(ring_of(8), 8), CommandStatus::bad_state);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::dead_cq));
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Shared receive queues on the device: the chain, read-ahead, invalid entries, and commands.
#include "model/nic/engine/qp_context.h"
#include "model/nic/nic.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/queues/shared_receives.h"
#include "tests/unit/nic/nic_pair.h"
#include "tests/unit/nic/objects/shared_ring.h"

namespace rnicsim::nic::test::shared_receives {
namespace {

using abi::CommandStatus;
using abi::SendOpcode;

constexpr std::uint32_t kSrqn = 6;
constexpr std::uint64_t kNowhere = 0x7777'0000'0000;

class SharedReceivesTest : public Pair {
 protected:
  void SetUp() override {
    build({});
    SharedRing::map_contexts(b());
    ring = std::make_unique<SharedRing>(b(), kSrqn);
    b().nic.blocks().events.written.subscribe([this](const EventTrace& event) {
      events.push_back({event.type, event.number});
    });
  }
  // b's QP uses the SRQ.
  void share() {
    ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
    ASSERT_EQ(b().create_qp_anew(sharing), CommandStatus::ok);
    connect();
  }
  static void sharing(abi::Qpc& c) {
    c.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq;
    c.srqn = kSrqn;
  }
  void send(int count, std::uint32_t length = 8) {
    for (int i = 0; i < count; ++i) a().post_send({.opcode = SendOpcode::send, .length = length});
  }
  // Indices of the entries that the next messages filled.
  std::vector<std::uint16_t> filled(std::size_t count) {
    std::vector<std::uint16_t> indices;
    while (indices.size() < count) {
      const auto cqe = b().wait(kReceiveCqn);
      if (!cqe) break;
      EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::success);
      indices.push_back(cqe->wqe_counter);
    }
    return indices;
  }
  std::uint32_t syndrome() { return b().output<abi::CommandResult>().syndrome; }
  SharedReceiveCounters counters() { return b().nic.counters().shared_receives; }
  // A message finds an invalid entry.
  void expect_error() {
    send(1);
    run(100);
    EXPECT_EQ(counters().errors, 1u);
    using Event = std::pair<EventType, std::uint32_t>;
    const std::vector<Event> wanted{
        {EventType::srq_error, kSrqn}, {EventType::qp_fatal, kQpn}, {EventType::last_wqe_reached, kQpn}};
    std::vector<Event> came;
    for (const auto& event : events)
      if (event.first != EventType::completion) came.push_back(event);
    EXPECT_EQ(came, wanted);
    EXPECT_EQ(ring->query().flags, abi::Srqc::kInError);
    EXPECT_EQ(ring->modify(abi::ModifySrq::kLimit, 1), CommandStatus::bad_state);
  }

  std::unique_ptr<SharedRing> ring;
  std::vector<std::pair<EventType, std::uint32_t>> events;
};

TEST_F(SharedReceivesTest, NeighboursAreReadTogether) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  for (int i = 0; i < 12; ++i) ring->post(b().buffer + 64u * unsigned(i), 64);
  send(12);
  EXPECT_EQ(filled(12), (std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(counters().taken, 12u);
  EXPECT_EQ(counters().entries_read, 12u);
  EXPECT_EQ(counters().entry_reads, 2u);
  EXPECT_EQ(ring->query().taken, 12u);
  EXPECT_EQ(ring->query().head, 12u);
}

TEST_F(SharedReceivesTest, TheChainIsFollowedWhereverItGoes) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  const std::uint16_t order[] = {0, 7, 8, 3, 15, 1};
  for (std::size_t i = 0; i + 1 < std::size(order); ++i) {
    ring->link(order[i], order[i + 1]);
    ring->write(order[i], b().buffer, 64);
  }
  ring->announce(5);
  send(5);
  EXPECT_EQ(filled(5), (std::vector<std::uint16_t>{0, 7, 8, 3, 15}));
  EXPECT_EQ(ring->query().head, 1u);
}

TEST_F(SharedReceivesTest, NoneIsTakenBeforeItIsPosted) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  for (std::uint32_t i = 0; i < 16; ++i) ring->write(i, b().buffer, 64);
  ring->announce(1);
  send(2);
  EXPECT_EQ(filled(1), (std::vector<std::uint16_t>{0}));
  run(15);
  EXPECT_FALSE(b().poll(kReceiveCqn));
  EXPECT_GT(counters().empty, 0u);
  ring->announce(2);
  EXPECT_EQ(filled(1), (std::vector<std::uint16_t>{1}));
}

// The record stays at its address when the ring moves, and a pending read of the record must still be served.
TEST_F(SharedReceivesTest, ANewRingDoesNotPutTheLimitOff) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  for (int i = 0; i < 3; ++i) ring->post(b().buffer + 64u * unsigned(i), 64);
  ASSERT_EQ(ring->modify(abi::ModifySrq::kLimit, 2), CommandStatus::ok);
  run(20);
  EXPECT_EQ(counters().limits, 0u);
  send(2);
  const auto step_until = [&](auto&& condition) {
    for (int step = 0; step < 10'000 && !condition(); ++step) run(0.01);
    ASSERT_TRUE(condition());
  };
  step_until([&] { return counters().taken == 2; });
  // The record that was read before the second entry was taken must not decide: it is read once more.
  const auto reads = counters().record_reads + 1;
  step_until([&] { return counters().record_reads == reads; });
  b().nic.blocks().shared_receives.modified(kSrqn, abi::ModifySrq::kRing);
  run(20);
  EXPECT_EQ(counters().limits, 1u);
  EXPECT_EQ(counters().record_reads, reads);
}

TEST_F(SharedReceivesTest, AnEntryThatNamesNone) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  ring->post(b().buffer, 64);
  ring->link(0, 16);
  expect_error();
}

TEST_F(SharedReceivesTest, ARecordThatAnnouncesTooMany) {
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  share();
  ring->announce(16);
  expect_error();
}

TEST_F(SharedReceivesTest, ARecordThatCantBeRead) {
  auto create = ring->mailbox();
  create.context.doorbell_record = kNowhere;
  ASSERT_EQ(b().command(create), CommandStatus::ok);
  share();
  expect_error();
}

TEST_F(SharedReceivesTest, ARingThatCantBeRead) {
  auto create = ring->mailbox();
  create.context.ring = kNowhere;
  ASSERT_EQ(b().command(create), CommandStatus::ok);
  share();
  ring->post(b().buffer, 64);
  expect_error();
}

TEST_F(SharedReceivesTest, CreationIsChecked) {
  const auto refused = [&](auto change, CommandSyndrome why, CommandStatus status = CommandStatus::bad_parameter) {
    auto create = ring->mailbox();
    change(create);
    EXPECT_EQ(b().command(create), status);
    EXPECT_EQ(syndrome(), std::uint32_t(why));
  };
  using Create = abi::CreateSrq;
  refused([](Create& c) { c.header.object = 1u << 24; }, CommandSyndrome::number_out_of_range,
          CommandStatus::exceeds_limit);
  refused([](Create& c) { c.header.object = 64; }, CommandSyndrome::no_icm);
  refused([](Create& c) { c.context.log_entries = 0; }, CommandSyndrome::bad_size);
  refused([](Create& c) { c.context.log_entries = 16; }, CommandSyndrome::bad_size);
  refused([](Create& c) { c.context.log_stride = 4; }, CommandSyndrome::bad_size);
  refused([](Create& c) { c.context.log_stride = 11; }, CommandSyndrome::bad_size);
  refused([](Create& c) { c.context.limit = 16; }, CommandSyndrome::bad_range);
  refused([](Create& c) { c.context.ring = 32; }, CommandSyndrome::bad_alignment);
  refused([](Create& c) { c.context.doorbell_record = 4; }, CommandSyndrome::bad_alignment);
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  refused([](Create&) {}, CommandSyndrome::exists, CommandStatus::resource_busy);
}

TEST_F(SharedReceivesTest, WhatUsesItKeepsIt) {
  ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(b().create_qp_anew(sharing), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::no_srq));
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  EXPECT_EQ(b().create_qp_anew([](abi::Qpc& c) {
    sharing(c);
    c.flags |= abi::Qpc::kHasReceive;
  }),
            CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(QpSyndrome::shared_receives));
  EXPECT_EQ(ring->command(abi::CommandOpcode::destroy_srq), CommandStatus::ok) << "a QP that was refused uses nothing";
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  ASSERT_EQ(b().create_qp_anew(sharing), CommandStatus::ok);
  EXPECT_EQ(ring->command(abi::CommandOpcode::destroy_srq), CommandStatus::resource_busy);
  abi::MapIcm unmap;
  unmap.header.opcode = std::uint16_t(abi::CommandOpcode::unmap_icm);
  unmap.table = static_cast<std::uint32_t>(abi::IcmTable::srqc);
  unmap.count = 64;
  EXPECT_EQ(b().command(unmap), CommandStatus::resource_busy);
  ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(ring->command(abi::CommandOpcode::destroy_srq), CommandStatus::ok);
  EXPECT_EQ(ring->command(abi::CommandOpcode::destroy_srq), CommandStatus::bad_resource);
  EXPECT_EQ(ring->command(abi::CommandOpcode::query_srq), CommandStatus::bad_resource);
  EXPECT_EQ(b().command(unmap), CommandStatus::ok);
}

TEST_F(SharedReceivesTest, ChangesAreChecked) {
  EXPECT_EQ(ring->modify(abi::ModifySrq::kLimit, 1), CommandStatus::bad_resource);
  ASSERT_EQ(ring->create(), CommandStatus::ok);
  EXPECT_EQ(ring->modify(1u << 5, 1), CommandStatus::not_supported);
  EXPECT_EQ(ring->modify(abi::ModifySrq::kLimit, 16), CommandStatus::bad_parameter);
  EXPECT_EQ(ring->modify(abi::ModifySrq::kRing, 0, 4096, 3), CommandStatus::bad_parameter) << "smaller";
  EXPECT_EQ(ring->modify(abi::ModifySrq::kRing, 0, 4096, 16), CommandStatus::bad_parameter);
  EXPECT_EQ(ring->modify(abi::ModifySrq::kRing, 0, 32, 5), CommandStatus::bad_parameter);
  EXPECT_EQ(ring->modify(abi::ModifySrq::kRing | abi::ModifySrq::kLimit, 32, 4096, 5), CommandStatus::bad_parameter);
  auto context = ring->query();
  EXPECT_EQ(context.ring, ring->ring);
  EXPECT_EQ(context.limit, 0u);
  EXPECT_EQ(ring->modify(abi::ModifySrq::kRing, 0, 4096, 5), CommandStatus::ok);
  context = ring->query();
  EXPECT_EQ(context.ring, 4096u);
  EXPECT_EQ(context.log_entries, 5);
}

}  // namespace
}  // namespace rnicsim::nic::test::shared_receives

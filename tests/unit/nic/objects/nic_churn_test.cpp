// SPDX-License-Identifier: Apache-2.0
// Events while contexts are being fetched or evicted: eviction of CQs with their state, destruction, and reset of the
// device.
#include "model/nic/nic_params.h"
#include "tests/unit/nic/many_qps.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

NicParams without_caches(std::uint32_t entries = 0) {
  NicParams params;
  for (auto* cache : {&params.contexts.qpc, &params.contexts.cqc, &params.contexts.mpt, &params.contexts.mtt}) {
    cache->l0_entries = 0;
    cache->l1_entries = entries;
    cache->ways = 1;
  }
  return params;
}

class Churn : public ManyPairs {
 protected:
  void write(std::uint32_t i) { qa->post(i, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(i)}); }
};

// An armed CQ is still armed after its eviction, and fires once.
TEST_F(Churn, ACqStaysArmed) {
  for (const std::uint32_t entries : {0u, 1u}) {
    build(without_caches(entries), 2);
    a().arm(kSendCqn, false);
    a().arm(kReceiveCqn, false);  // takes the other CQ's cache entry
    run(20);
    EXPECT_FALSE(a().poll_eq(1));
    write(0);
    ASSERT_EQ(completions(a(), kSendCqn, 1), 1);
    run(20);
    const auto event = a().poll_eq(1);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->number, kSendCqn);
    write(1);
    ASSERT_EQ(completions(a(), kSendCqn, 1), 1);
    run(20);
    EXPECT_FALSE(a().poll_eq(1));
  }
}

TEST_F(Churn, ACqStaysArmedForSolicitedEntriesOnly) {
  build(without_caches(), 1);
  for (int i = 0; i < 3; ++i) qb->post_receive(0, qb->area(0), 64);
  b().arm(kReceiveCqn, true);
  qa->post(0, {.opcode = SendOpcode::send, .length = 8});
  run(40);
  EXPECT_FALSE(b().poll_eq(1));
  qa->post(0, {.opcode = SendOpcode::send,
               .length = 8,
               .flags = abi::ControlSegment::kSolicited | abi::ControlSegment::kSignaled});
  run(40);
  EXPECT_TRUE(b().poll_eq(1));
}

// The ring has 64 entries: the device must read the consumer index again and again, while the context is evicted and
// fetched.
TEST_F(Churn, ACqKeepsItsConsumer) {
  for (const std::uint32_t entries : {0u, 1u}) {
    build(without_caches(entries), 4);
    for (int round = 0; round < 60; ++round) {
      for (std::uint32_t i = 0; i < 4; ++i) write(i);
      ASSERT_EQ(completions(a(), kSendCqn, 4), 4) << round;
    }
    EXPECT_EQ(a().nic.counters().completion.cq_overruns, 0u);
    EXPECT_EQ(a().nic.counters().completion.cqes, 240u);
    expect_no_trouble();
  }
}

TEST_F(Churn, ACqThatDiedStaysDead) {
  for (const std::uint32_t entries : {0u, 1u}) {
    build(without_caches(entries), 4);
    a().consumes = false;
    for (int round = 0; round < 17; ++round) {
      for (std::uint32_t i = 0; i < 4; ++i) write(i);
      run(30);
    }
    EXPECT_EQ(a().nic.counters().completion.cq_overruns, 1u);
    EXPECT_EQ(a().nic.counters().completion.cqes, 64u);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(qa->query(i).state, abi::QpState::error);
    a().arm(kSendCqn, false);
    run(30);
    for (std::uint32_t i = 0; i < 4; ++i) write(i);
    run(30);
    EXPECT_EQ(a().nic.counters().completion.cqes, 64u);
    EXPECT_EQ(a().nic.counters().completion.cq_overruns, 1u);
  }
}

// The doorbell waits for the context when the QP is destroyed, at every moment of the fill.
TEST_F(Churn, DestructionWhileAFillIsUnderWay) {
  for (double us = 0; us < 0.7; us += 0.05) {
    build(without_caches(), 3);
    for (std::uint32_t i = 0; i < 3; ++i) write(i);
    if (us != 0) run(us);
    EXPECT_EQ(qa->command(1, abi::CommandOpcode::destroy_qp), abi::CommandStatus::ok);
    ASSERT_GE(completions(a(), kSendCqn, 3, 50_us), 2);
    qa->create(1);
    EXPECT_EQ(qb->modify(1, abi::QpState::reset), abi::CommandStatus::ok);
    qa->connect(1, 2);
    qb->connect(1, 1);
    for (std::uint32_t i = 0; i < 3; ++i)
      qa->post(i, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(i)});
    ASSERT_GE(completions(a(), kSendCqn, 2, 200_us), 2);
    EXPECT_EQ(a().nic.counters().engine.wrong_state, 0u);
  }
}

TEST_F(Churn, ARegionThatGoesWhileItsFillIsUnderWayIsRefused) {
  auto params = without_caches();
  params.contexts.mpt.miss_slots = 1;
  build(params, 2);
  b().register_memory(9 << 8 | 1, b().buffer, 4096, 0xf);
  qa->post(0, {.opcode = SendOpcode::write, .length = 8, .remote = Remote{b().buffer, 9 << 8 | 1}});
  run(1.6);
  abi::CommandHeader destroy;
  destroy.opcode = std::uint16_t(abi::CommandOpcode::destroy_mpt);
  destroy.object = 9;
  EXPECT_EQ(b().command(destroy), abi::CommandStatus::ok);
  run(50);
  const auto first = a().wait(kSendCqn, 50_us);
  ASSERT_TRUE(first);
  qa->post(1, {.opcode = SendOpcode::write, .length = 8, .remote = Remote{b().buffer, 9 << 8 | 1}});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::remote_access_error);
}

// A reset at every moment of many misses; then the device is brought up again and works.
TEST_F(Churn, ResetWhileFillsAreUnderWay) {
  for (double us = 0.1; us < 4; us += 0.3) {
    build(without_caches(), 8);
    for (std::uint32_t i = 0; i < 8; ++i) {
      write(i);
      qb->post_receive(i, qb->area(i), 64);
      qb->post(i, {.opcode = SendOpcode::read, .length = 3000, .remote = Remote{qa->area(i), kKey}});
      qa->post(i, {.opcode = SendOpcode::send, .length = 64, .blueflame = false});
    }
    run(us);
    for (auto* node : {&a(), &b()})
      node->host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
    run(50);
    for (auto* node : {&a(), &b()}) {
      node->host.heap = kMemoryBase;
      std::ranges::fill(node->host.memory, std::byte{0});
      node->bring_up();
    }
    qa = std::make_unique<QueuePairs>(a(), 8);
    qb = std::make_unique<QueuePairs>(b(), 8);
    for (std::uint32_t i = 0; i < 8; ++i) {
      qa->connect(i, 2);
      qb->connect(i, 1);
      write(i);
    }
    ASSERT_EQ(completions(a(), kSendCqn, 8), 8) << "reset after " << us << " us";
    EXPECT_EQ(a().nic.counters().engine.wrong_state, 0u);
  }
}

// A context that cannot be read back: its QP is lost with one event; the other QPs continue.
TEST_F(Churn, ALostContextIsItsQpsEndAndNobodyElses) {
  build(without_caches(1), 3);
  abi::MapIcm map;
  map.header.opcode = std::uint16_t(abi::CommandOpcode::map_icm);
  map.first_index = 64;
  map.count = 8;
  map.memory = a().host.allocate(8 * 256);
  ASSERT_EQ(a().command(map), abi::CommandStatus::ok);
  const auto lost = map.memory;
  QueuePairs far(a(), 1, 64);
  far.connect(0, 2);
  for (std::uint32_t i = 0; i < 3; ++i) write(i);
  ASSERT_EQ(completions(a(), kSendCqn, 3), 3);  // the context has left the device
  while (a().poll_eq(0)) {}
  a().host.refuse_from = lost;
  EXPECT_EQ(far.command(0, abi::CommandOpcode::query_qp), abi::CommandStatus::ok);
  run(50);
  const auto event = a().poll_eq(0);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, abi::EventType::qp_fatal);
  EXPECT_EQ(event->number, 64u);
  EXPECT_FALSE(a().poll_eq(0));
  for (std::uint32_t i = 0; i < 3; ++i) write(i);
  EXPECT_EQ(completions(a(), kSendCqn, 3), 3);
}

TEST_F(Churn, ARefusedQpTakesNoPlace) {
  build(without_caches(1), 1);
  const auto before = a().nic.counters().contexts.qpc.evictions;
  abi::CreateQp qp;
  qp.header.opcode = std::uint16_t(abi::CommandOpcode::create_qp);
  qp.header.object = 50;
  qp.context.flags = abi::Qpc::kHasSend;
  qp.context.log_send_blocks = 30;
  qp.context.send_cqn = qp.context.receive_cqn = kSendCqn;
  EXPECT_EQ(a().command(qp), abi::CommandStatus::bad_parameter);
  EXPECT_EQ(a().nic.counters().contexts.qpc.evictions, before);
}

}  // namespace
}  // namespace rnicsim::nic::test

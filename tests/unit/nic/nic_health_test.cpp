// SPDX-License-Identifier: Apache-2.0
// The cable's signal, the device's health, and a driver's view of both.
#include "model/nic/nic.h"
#include "model/nic/personality/values.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

constexpr std::uint8_t kPortDown = 1, kPortActive = 4;

class Health : public Pair {
 protected:
  std::uint8_t port_state() {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(abi::CommandOpcode::query_port);
    header.object = 1u;
    EXPECT_EQ(a().command(header), abi::CommandStatus::ok);
    return a().output<abi::PortAttributes>().state;
  }
  void expect_event(abi::EventType type, std::uint32_t number) {
    run(5);
    const auto eqe = a().poll_eq(0);
    ASSERT_TRUE(eqe);
    EXPECT_EQ(eqe->type, type);
    EXPECT_EQ(eqe->number, number);
    EXPECT_FALSE(a().poll_eq(0));
  }
  std::uint32_t reg(std::uint32_t offset) { return a().host.mmio_read(offset); }
  void arm_events() { a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{0}); }
};

TEST_F(Health, ALinkThatGoesDownAndComesBack) {
  connect();
  arm_events();
  run(5);
  a().host.interrupts.clear();
  EXPECT_EQ(port_state(), kPortActive);
  a().nic.set_link(false);
  expect_event(abi::EventType::port_error, 1);
  EXPECT_FALSE(a().host.interrupts.empty());
  EXPECT_EQ(port_state(), kPortDown);
  a().nic.set_link(false);  // changes nothing
  run(5);
  EXPECT_FALSE(a().poll_eq(0));
  a().fill(3);
  a().post_send({.opcode = SendOpcode::write, .length = 5000, .remote = at_b()});
  run(50);
  EXPECT_EQ(b().nic.counters().rx.packets, 0u);
  EXPECT_EQ(a().nic.counters().port.link_down_discards, 5u);
  a().nic.set_link(true);
  expect_event(abi::EventType::port_active, 1);
  EXPECT_EQ(port_state(), kPortActive);
  // The WRITE is retransmitted after the timeout.
  EXPECT_EQ(a().wait_status(kSendCqn, 1_s), CqeSyndrome::success);
  EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(b().buffer), 5000), 0);
  EXPECT_EQ(a().nic.counters().port.link_down_events_phy, 1u);
}

TEST_F(Health, WhatComesWhileTheLinkIsDownIsLost) {
  connect();
  b().nic.set_link(false);
  a().post_send({.opcode = SendOpcode::write, .length = 100, .remote = at_b()});
  run(50);
  EXPECT_EQ(b().nic.counters().port.link_down_discards, 1u);
  EXPECT_EQ(b().nic.counters().port.rx_frames, 0u);
  EXPECT_FALSE(a().poll(kSendCqn));
}

TEST_F(Health, TheHeartbeatCountsMilliseconds) {
  const auto before = reg(abi::reg::kHealthCounter);
  run(2999);
  const auto after = reg(abi::reg::kHealthCounter);
  EXPECT_TRUE(after == before + 2 || after == before + 3) << before << " " << after;
}

TEST_F(Health, ADeviceThatFailsSaysSoAndStops) {
  connect();
  arm_events();
  run(5);
  a().fill(4);
  a().post_send({.opcode = SendOpcode::write, .length = 100'000, .remote = at_b()});
  run(3);
  a().host.interrupts.clear();
  a().nic.fail(HealthSyndrome::injected);
  expect_event(abi::EventType::device_fatal, 0);
  EXPECT_FALSE(a().host.interrupts.empty());
  EXPECT_EQ(reg(abi::reg::kStatus), std::uint32_t(abi::DeviceStatus::fatal));
  EXPECT_EQ(reg(abi::reg::kHealthSyndrome), std::uint32_t(abi::HealthSyndrome::injected));
  const auto heartbeat = reg(abi::reg::kHealthCounter);
  const auto sent = a().nic.counters().tx.roce_packets;
  b().post_send({.opcode = SendOpcode::write, .length = 8, .remote = Remote{a().buffer, kKey}});
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  run(5000);
  EXPECT_EQ(a().nic.counters().tx.roce_packets, sent);
  EXPECT_EQ(reg(abi::reg::kHealthCounter), heartbeat);
  EXPECT_FALSE(a().poll(kSendCqn));
  EXPECT_EQ(b().wait_status(kSendCqn, 1_s), CqeSyndrome::transport_retry_exceeded);
  EXPECT_FALSE(a().host.mmio(abi::reg::kCommandDoorbell, std::vector<std::byte>(4)));
  // A failed device reports no changes of the link.
  a().nic.set_link(false);
  a().nic.set_link(true);
  run(5);
  EXPECT_FALSE(a().poll_eq(0));
}

TEST_F(Health, AnEventThatMemoryRefusesIsAnInternalError) {
  a().host.read_only = a().event_ring(1);
  a().arm(kSendCqn, false);
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  expect_event(abi::EventType::device_fatal, 0);
  EXPECT_EQ(reg(abi::reg::kStatus), std::uint32_t(abi::DeviceStatus::fatal));
  EXPECT_EQ(reg(abi::reg::kHealthSyndrome), std::uint32_t(abi::HealthSyndrome::event_queue_access));
}

TEST_F(Health, AContextThatMemoryRefusesIsAnInternalError) {
  a().host.read_only = a().icm[std::size_t(abi::IcmTable::mpt)];
  a().host.put(a().mailbox(), a().region(0x305, a().buffer, 64, 1));
  abi::CommandEntry entry;
  entry.owner = 1;
  entry.input_bytes = sizeof(abi::CreateMpt);
  entry.input = a().mailbox();
  entry.output = a().output_mailbox();
  entry.output_bytes = 4096;
  a().host.put(a().command_queue(), entry);
  a().write_be(abi::reg::kCommandDoorbell, 1u);
  expect_event(abi::EventType::device_fatal, 0);
  EXPECT_EQ(reg(abi::reg::kHealthSyndrome), std::uint32_t(abi::HealthSyndrome::icm_access));
}

TEST_F(Health, ACommandsCompletionThatMemoryRefusesIsAnInternalError) {
  abi::CommandEntry entry;
  entry.owner = 1;
  a().host.put(a().command_queue(), entry);
  a().host.read_only = a().command_queue();
  a().write_be(abi::reg::kCommandDoorbell, 1u);
  expect_event(abi::EventType::device_fatal, 0);
  EXPECT_EQ(reg(abi::reg::kHealthSyndrome), std::uint32_t(abi::HealthSyndrome::command_queue_access));
}

TEST_F(Health, WithoutBusMasteringARefusedWriteIsNoError) {
  a().host.config_write(abi::config::kCommand, abi::config::kCommandMemory, 2);
  a().nic.set_link(false);
  run(5);
  EXPECT_EQ(reg(abi::reg::kStatus), std::uint32_t(abi::DeviceStatus::ready));
}

TEST_F(Health, AResetBringsADeadDeviceBack) {
  connect();
  a().nic.fail(HealthSyndrome::injected);
  run(5);
  a().host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
  run(5);
  a().host.config_write(abi::config::kCommand, abi::config::kCommandMemory | abi::config::kCommandBusMaster, 2);
  EXPECT_EQ(reg(abi::reg::kStatus), std::uint32_t(abi::DeviceStatus::initializing));
  EXPECT_EQ(reg(abi::reg::kHealthSyndrome), 0u);
  a().bring_up();
  a().restart();
  a().create_qp();
  b().modify(abi::QpState::reset, 0);
  b().restart();
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
}

}  // namespace
}  // namespace rnicsim::nic::test

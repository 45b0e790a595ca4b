// SPDX-License-Identifier: Apache-2.0
// Interrupts, arming, function-level reset, and contexts that are fetched from ICM.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <tuple>

#include "model/nic/contexts/context_cache.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/msix.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

class Events : public Pair {};

TEST_F(Events, AnEventOnlyAfterArmingAndOnce) {
  connect();
  const auto write = [&] {
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  };
  write();
  EXPECT_FALSE(a().poll_eq(1));
  a().arm(kSendCqn, false);
  a().host.interrupts.clear();
  write();
  run(1);
  const auto eqe = a().poll_eq(1);
  ASSERT_TRUE(eqe);
  EXPECT_EQ(eqe->type, abi::EventType::completion);
  EXPECT_EQ(eqe->number, kSendCqn);
  EXPECT_EQ(a().host.interrupts, std::vector<std::uint64_t>{2});
  write();
  EXPECT_FALSE(a().poll_eq(1));
}

// Arm doorbells of a CQ, and of the EQ, which would be full otherwise.
TEST_F(Events, EveryDoorbellIsHeard) {
  connect();
  for (std::uint32_t i = 0; i < 300; ++i) {
    a().arm(kSendCqn, false);
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    ASSERT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    run(1);
    ASSERT_TRUE(a().poll_eq(1)) << "event " << i;
    a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32 | (i + 1));
  }
  EXPECT_EQ(a().nic.counters().events.eq_overruns, 0u);
}

// The queue has 64 entries, and the driver is late.
TEST_F(Events, OfAQueueThatIsFullWaitForRoom) {
  constexpr int kEntries = 64, kEvents = 150;
  connect();
  for (int i = 0; i < kEvents; ++i) {
    const auto cqn = i % 3 == 0 ? kReceiveCqn : kSendCqn;
    a().arm(cqn, false);
    if (cqn == kReceiveCqn) a().post_receive(a().buffer, 64);
    auto& sender = cqn == kReceiveCqn ? b() : a();
    if (cqn == kReceiveCqn)
      sender.post_send({.opcode = SendOpcode::send, .length = 8});
    else
      sender.post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    ASSERT_EQ(a().wait_status(cqn), CqeSyndrome::success);
    run(1);
  }
  for (int taken = 0; taken < kEvents;) {
    const int round = std::min(kEntries, kEvents - taken);
    for (const int end = taken + round; taken < end; ++taken) {
      const auto eqe = a().poll_eq(1);
      ASSERT_TRUE(eqe) << "event " << taken;
      EXPECT_EQ(eqe->number, taken % 3 == 0 ? kReceiveCqn : kSendCqn);
    }
    EXPECT_FALSE(a().poll_eq(1));
    a().host.interrupts.clear();
    a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32 | static_cast<std::uint64_t>(taken));
    run(1);
    EXPECT_EQ(a().host.interrupts.size(), taken < kEvents ? 1u : 0u);
  }
  EXPECT_EQ(a().nic.counters().events.events, static_cast<Counter>(kEvents));
  EXPECT_EQ(a().nic.counters().events.eq_overruns, 0u);
}

TEST_F(Events, ALateArmFiresAtOnce) {
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  run(10);
  a().arm(kSendCqn, false);
  run(1);
  EXPECT_TRUE(a().poll_eq(1));
}

TEST_F(Events, SolicitedOnly) {
  connect();
  for (int i = 0; i < 3; ++i) b().post_receive(b().buffer, 64);
  b().arm(kReceiveCqn, true);
  a().post_send({.opcode = SendOpcode::send, .length = 8});
  run(10);
  EXPECT_TRUE(b().poll(kReceiveCqn));
  EXPECT_FALSE(b().poll_eq(1));
  a().post_send({.opcode = SendOpcode::send, .length = 8, .flags = abi::ControlSegment::kSolicited});
  run(10);
  EXPECT_TRUE(b().poll_eq(1));
}

TEST_F(Events, MaskedVectorIsRememberedAndSentWhenUnmasked) {
  connect();
  const auto control = abi::kMsixTable + 2 * 16 + 12;
  constexpr auto kMasked = std::uint32_t{1} << 24;  // little-endian
  a().write_be(control, kMasked);
  a().arm(kSendCqn, false);
  a().host.interrupts.clear();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  run(10);
  EXPECT_TRUE(a().poll_eq(1));
  EXPECT_TRUE(a().host.interrupts.empty());
  a().write_be(control, std::uint32_t{0});
  run(1);
  EXPECT_EQ(a().host.interrupts, std::vector<std::uint64_t>{2});
}

TEST_F(Events, EvictedContextsComeBackFromMemory) {
  connect();
  for (auto* node : {&a(), &b()}) {
    node->nic.blocks().contexts.regions.evict(kKey >> 8);
    node->nic.blocks().contexts.cqs.evict(kSendCqn);
    node->nic.blocks().contexts.cqs.evict(kReceiveCqn);
  }
  run(1);
  b().post_receive(b().buffer, 4096);
  a().fill(9);
  a().post_send({.opcode = SendOpcode::send, .length = 4096});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::success);
  EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(b().buffer), 4096), 0);
  EXPECT_EQ(b().nic.counters().contexts.fills, 2u);
}

TEST_F(Events, FunctionLevelResetForgetsEverything) {
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 65536, .remote = at_b()});
  run(2);
  a().host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
  run(100);
  EXPECT_FALSE(a().poll(kSendCqn));
  a().host.config_write(abi::config::kCommand, abi::config::kCommandMemory, 2);
  EXPECT_EQ(a().host.mmio_read(abi::reg::kStatus), std::uint32_t(abi::DeviceStatus::initializing));
  EXPECT_EQ(a().host.mmio_read(abi::reg::kMagic), abi::kMagicValue);
}

// Another bit of the same register byte, and bytes around it.
TEST_F(Events, NothingElseResetsTheFunction) {
  connect();
  for (const auto& [offset, value, bytes] : {std::tuple{abi::config::kDeviceControl + 1, 0x7fu, 1},
                                             {abi::config::kDeviceControl + 0, 0x7fffu, 2},
                                             {abi::config::kDeviceControl + 0, 0x80u, 1},
                                             {abi::config::kDeviceControl + 2, 0x8000u, 2}})
    EXPECT_TRUE(a().host.config_write(static_cast<std::uint64_t>(offset), value, static_cast<std::size_t>(bytes)));
  run(10);
  EXPECT_EQ(a().nic.counters().pcie.function_resets, 0u);
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
}

TEST_F(Events, OfAQueueThatIsNotThereAreLost) {
  abi::CommandHeader destroy;
  destroy.opcode = std::uint16_t(abi::CommandOpcode::destroy_eq);
  destroy.object = 0;  // the EQ of asynchronous events
  ASSERT_EQ(b().command(destroy), abi::CommandStatus::ok);
  connect();
  // An invalid key is an event at the other side.
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = Remote{b().buffer, kKey + 1}});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::remote_access_error);
  EXPECT_EQ(b().nic.counters().events.events, 0u);
  EXPECT_EQ(b().nic.counters().events.eq_overruns, 1u);
}

TEST(MsixTable, AMessageIsWhatTheTableSays) {
  MsixTable table(abi::kMsixVectors);
  std::array<std::byte, 16> entry{};
  const std::uint32_t words[] = {0x12345678, 0x9abcdef0, 0x11223344, 0};
  std::memcpy(entry.data(), words, sizeof words);  // little-endian
  ASSERT_TRUE(table.write_table(3 * 16, entry));
  std::array<std::byte, 16> read{};
  ASSERT_TRUE(table.read_table(3 * 16, read));
  EXPECT_EQ(read, entry);
  const auto message = table.raise(3, false);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->address, 0x9abcdef012345678u);
  EXPECT_EQ(message->data, 0x11223344u);
  EXPECT_FALSE(table.raise(4, false));  // masked since reset
  EXPECT_FALSE(table.raise(60, false));
  std::uint64_t pending = 0;
  ASSERT_TRUE(table.read_pending(0, std::as_writable_bytes(std::span(&pending, 1))));
  EXPECT_EQ(pending, 1ull << 60 | 1ull << 4);  // little-endian
  EXPECT_FALSE(table.read_table(abi::kMsixVectors * 16 - 8, read));
  EXPECT_FALSE(table.write_table(abi::kMsixVectors * 16 - 8, entry));
}

TEST_F(Events, StandstillReportHasALineAQp) {
  connect();
  std::string text;
  a().nic.describe_state(text);
  EXPECT_NE(text.find("RTS"), std::string::npos);
}

}  // namespace
}  // namespace rnicsim::nic::test

// SPDX-License-Identifier: Apache-2.0
// Memory windows on the device: entries, commands, and binds that a driver builds itself.
#include "model/nic/queues/command_unit.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test::windows {
namespace {

using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::MptKind;
using abi::SendOpcode;

constexpr std::uint32_t kRegion = 9 << 8 | 1, kWindow = 10 << 8 | 2, kOtherWindow = 11 << 8 | 3;
constexpr std::uint32_t kRights = abi::access::kLocalWrite | abi::access::kRemoteWrite | abi::access::kRemoteRead |
                                  abi::access::kRemoteAtomic | abi::access::kWindowBind;
constexpr std::uint32_t kWindowRights = abi::access::kRemoteWrite | abi::access::kRemoteRead;

class Windows : public Pair {
 protected:
  void SetUp() override { begin({}); }
  void begin(const NicParams& params) {
    build(params);
    connect();
    memory_ = b().host.allocate(4096);
    b().register_memory(kRegion, memory_, 4096, kRights);
  }

  template <class Change>
  CommandStatus make(std::uint32_t key, MptKind kind, Change&& change) {
    auto mailbox = b().region(key, 0xbad, 0, 0);
    mailbox.context.kind = kind;
    change(mailbox.context);
    return b().command(mailbox);
  }
  CommandStatus make(std::uint32_t key, MptKind kind) {
    return make(key, kind, [](abi::Mpt&) {});
  }
  CommandStatus about(abi::CommandOpcode opcode, std::uint32_t key) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = key >> 8;
    return b().command(header);
  }
  CommandStatus destroy(std::uint32_t key) { return about(abi::CommandOpcode::destroy_mpt, key); }
  abi::Mpt query(std::uint32_t key) {
    EXPECT_EQ(about(abi::CommandOpcode::query_mpt, key), CommandStatus::ok);
    return b().output<abi::QueryMpt>().context;
  }
  CommandStatus modify(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) {
    auto mailbox = b().region(key, address, bytes, kRights);
    mailbox.header.opcode = std::uint16_t(abi::CommandOpcode::modify_mpt);
    return b().command(mailbox);
  }
  std::uint32_t syndrome() { return b().output<abi::CommandResult>().syndrome; }

  CqeSyndrome bind(std::uint32_t window, std::uint32_t key, std::uint64_t length = 64) {
    abi::BindSegment segment;
    segment.window = window;
    segment.rkey = key;
    segment.region = kRegion;
    segment.access_flags = kWindowRights;
    segment.address = memory_ + 100;
    segment.length = length;
    b().post_send({.opcode = SendOpcode::bind_window, .bind = segment});
    return b().wait_status(kSendCqn);
  }
  CqeSyndrome write(std::uint32_t key, std::uint64_t offset = 100) {
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = Remote{memory_ + offset, key}});
    return a().wait_status(kSendCqn);
  }

  std::uint64_t memory_ = 0;
};

TEST_F(Windows, AreMadeUnbound) {
  EXPECT_EQ(make(kWindow, MptKind::window2,
                 [](abi::Mpt& mpt) {
                   mpt.valid = 1u;
                   mpt.region = kRegion >> 8;
                   mpt.qpn = kQpn;
                   mpt.length = 64;
                   mpt.access_flags = kRights;
                 }),
            CommandStatus::ok);
  const auto window = query(kWindow);
  EXPECT_EQ(window.kind, MptKind::window2);
  EXPECT_EQ(window.valid, 0u);
  EXPECT_EQ(window.length, 0u);
  EXPECT_EQ(window.access_flags, 0u);
  // A new region has no windows, whatever its driver states.
  EXPECT_EQ(make(kOtherWindow, MptKind::region, [](abi::Mpt& mpt) { mpt.windows = 3; }), CommandStatus::ok);
  EXPECT_EQ(destroy(kOtherWindow), CommandStatus::ok);
  EXPECT_EQ(make(kOtherWindow, MptKind(6)), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_kind));
}

TEST_F(Windows, ARegionCountsThem) {
  for (const std::uint32_t l1 : {0u, 1u, 2048u}) {
    SCOPED_TRACE(l1);
    NicParams params;
    params.contexts.mpt.l0_entries = l1 < 2 ? 0 : 64;
    params.contexts.mpt.l1_entries = l1;
    begin(params);
    ASSERT_EQ(make(kWindow, MptKind::window1), CommandStatus::ok);
    ASSERT_EQ(make(kOtherWindow, MptKind::window2), CommandStatus::ok);
    EXPECT_EQ(bind(kWindow, kWindow + 1), CqeSyndrome::success);
    EXPECT_EQ(bind(kOtherWindow, kOtherWindow + 1), CqeSyndrome::success);
    EXPECT_EQ(query(kRegion).windows, 2u);
    EXPECT_EQ(bind(kWindow + 1, kWindow + 2), CqeSyndrome::success);
    EXPECT_EQ(query(kRegion).windows, 2u);
    EXPECT_EQ(query(kWindow).key, kWindow + 2);
    EXPECT_EQ(query(kWindow).region, kRegion >> 8);
    EXPECT_EQ(query(kOtherWindow).qpn, kQpn);
    EXPECT_EQ(write(kWindow + 2), CqeSyndrome::success);
    EXPECT_EQ(write(kOtherWindow + 1), CqeSyndrome::success);
    EXPECT_EQ(destroy(kRegion), CommandStatus::resource_busy);
    EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::in_use));
    EXPECT_EQ(modify(kRegion, memory_, 64), CommandStatus::resource_busy);
    EXPECT_EQ(bind(kWindow + 2, kWindow + 3, 0), CqeSyndrome::success);
    EXPECT_EQ(query(kRegion).windows, 1u);
    EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
    EXPECT_EQ(query(kRegion).windows, 0u);
    EXPECT_EQ(query(kOtherWindow).valid, 0u);
    EXPECT_EQ(destroy(kRegion), CommandStatus::ok);
    for (const auto key : {kWindow, kOtherWindow}) EXPECT_EQ(destroy(key), CommandStatus::ok);
    EXPECT_EQ(destroy(kWindow), CommandStatus::bad_resource);
    const auto counters = b().nic.counters().windows;
    EXPECT_EQ(counters.bound, 3u);
    EXPECT_EQ(counters.closed, 3u);
    EXPECT_EQ(counters.refused, 0u);
  }
}

// The index names the window, and the PD must match. The driver's key may be ahead by flushed binds.
TEST_F(Windows, AreNamedByTheirIndex) {
  ASSERT_EQ(make(kWindow, MptKind::window1), CommandStatus::ok);
  EXPECT_EQ(bind(kWindow + 1, kWindow + 2), CqeSyndrome::success);
  EXPECT_EQ(query(kWindow).key, kWindow + 2);
}
TEST_F(Windows, OfAnotherIndex) {
  ASSERT_EQ(make(kWindow, MptKind::window1), CommandStatus::ok);
  EXPECT_EQ(bind(kWindow, kOtherWindow), CqeSyndrome::memory_window_bind_error);
  EXPECT_EQ(b().nic.counters().windows.refused, 1u);
}
TEST_F(Windows, RegionsAreNone) { EXPECT_EQ(bind(kRegion, kRegion + 1), CqeSyndrome::memory_window_bind_error); }
TEST_F(Windows, ThatDoNotExist) { EXPECT_EQ(bind(kWindow, kWindow + 1), CqeSyndrome::memory_window_bind_error); }
TEST_F(Windows, BindsWithoutTheirSegment) {
  b().post_send({.opcode = SendOpcode::bind_window});
  EXPECT_EQ(b().wait_status(kSendCqn), CqeSyndrome::local_qp_operation_error);
}

TEST_F(Windows, ADestroyedOneIsClosed) {
  ASSERT_EQ(make(kWindow, MptKind::window1), CommandStatus::ok);
  EXPECT_EQ(bind(kWindow, kWindow + 1), CqeSyndrome::success);
  EXPECT_EQ(destroy(kWindow), CommandStatus::ok);
  EXPECT_EQ(query(kRegion).windows, 0u);
  EXPECT_EQ(write(kWindow + 1), CqeSyndrome::remote_access_error);
}

TEST_F(Windows, ADeviceMayLackThem) {
  NicParams params;
  params.capabilities.windows = false;
  begin(params);
  for (const auto kind : {MptKind::window1, MptKind::window2})
    EXPECT_EQ(make(kWindow, kind), CommandStatus::not_supported);
  EXPECT_EQ(make(kWindow, MptKind::null), CommandStatus::ok);
}

TEST_F(Windows, RegionsAreModified) {
  const auto other = b().host.allocate(8192);
  EXPECT_EQ(modify(kRegion + 1, other, 8192), CommandStatus::ok);
  EXPECT_EQ(query(kRegion).key, kRegion + 1);
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = Remote{other + 8000, kRegion + 1}});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_EQ(modify(kWindow, other, 8192), CommandStatus::bad_resource);
  EXPECT_EQ(modify(kRegion, ~0ull, 8192), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_range));
  ASSERT_EQ(make(kWindow, MptKind::window1), CommandStatus::ok);
  EXPECT_EQ(modify(kWindow, other, 8192), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(), std::uint32_t(CommandSyndrome::bad_kind));
  EXPECT_EQ(write(kRegion), CqeSyndrome::remote_access_error);
}

}  // namespace
}  // namespace rnicsim::nic::test::windows

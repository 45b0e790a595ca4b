// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "model/nic/contexts/icm_map.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/engine/wqe.h"
#include "model/nic/personality/personality.h"
#include "model/roce/qp_state.h"
#include "model/roce/timers.h"

namespace rnicsim::nic {
namespace {

using namespace rnicsim::literals;

constexpr MemoryRegion kMemory{.valid = true,
                               .key = 0x1234,
                               .pd = 3,
                               .pasid = 7,
                               .access = access::kLocalWrite,
                               .start = 0x1000,
                               .length = 0x100,
                               .bus_address = 0x9000};

AccessResult check(std::uint64_t address, std::uint32_t length, std::uint32_t key = 0x1234, std::uint32_t pd = 3,
                   std::uint32_t access = 0) {
  return check_access(&kMemory, {pd, access}, {key, address, length});
}

TEST(CheckAccess, KeyPdRangeAndRights) {
  EXPECT_EQ(check(0x1000, 0x100), AccessResult::ok);
  EXPECT_EQ(check(0x1000, 0x100, 0x1235), AccessResult::bad_key);
  EXPECT_EQ(check(0x1000, 0x100, 0x1234, 4), AccessResult::bad_pd);
  EXPECT_EQ(check(0xfff, 2), AccessResult::bad_range);
  EXPECT_EQ(check(0x10ff, 2), AccessResult::bad_range);
  EXPECT_EQ(check(0x10ff, 1), AccessResult::ok);
  EXPECT_EQ(check(~0ull, 2), AccessResult::bad_range);
  EXPECT_EQ(check(0x1001, 0xffffffff), AccessResult::bad_range);
  EXPECT_EQ(check(0x1000, 1, 0x1234, 3, access::kLocalWrite), AccessResult::ok);
  EXPECT_EQ(check(0x1000, 1, 0x1234, 3, access::kRemoteRead), AccessResult::denied);
  EXPECT_EQ(check_access(nullptr, {3, 0}, {0x1234, 0x1000, 1}), AccessResult::bad_key);
}

TEST(CheckAccess, WindowsAreForPeersAndType2ForOneQueuePair) {
  auto window = kMemory;
  window.access = access::kRemoteRead;
  const auto through = [&](Qpn qpn, bool remote) {
    return check_access(&window, {3, access::kRemoteRead, qpn, remote}, {0x1234, 0x1000, 8});
  };
  window.kind = RegionKind::window1;
  EXPECT_EQ(through({5}, true), AccessResult::ok);
  EXPECT_EQ(through({6}, true), AccessResult::ok);
  EXPECT_EQ(through({5}, false), AccessResult::bad_key);
  window.kind = RegionKind::window2;
  window.qpn = 5;
  EXPECT_EQ(through({5}, true), AccessResult::ok);
  EXPECT_EQ(through({6}, true), AccessResult::bad_key);
  EXPECT_EQ(through({5}, false), AccessResult::bad_key);
  window.valid = false;
  EXPECT_EQ(through({5}, true), AccessResult::bad_key);
}

TEST(CheckAccess, TheNullRegionIsLocalAndEverywhere) {
  constexpr MemoryRegion kNull{.kind = RegionKind::null, .valid = true, .key = 0x1234, .pd = 3};
  for (const std::uint64_t address : {0ull, 0x123456789abcull, ~0ull}) {
    EXPECT_EQ(check_access(&kNull, {3, access::kLocalWrite}, {0x1234, address, 0xffffffff}), AccessResult::ok);
    EXPECT_EQ(check_access(&kNull, {3, 0, {}, true}, {0x1234, address, 8}), AccessResult::bad_key);
  }
  EXPECT_EQ(check_access(&kNull, {4, 0}, {0x1234, 0, 8}), AccessResult::bad_pd);
}

TEST(IcmMap, RangesDoNotOverlap) {
  IcmMap map(rnic_personality().layout.contexts);
  EXPECT_TRUE(map.map(IcmTable::cqc, 10, 10, 0x1000));
  EXPECT_FALSE(map.map(IcmTable::cqc, 19, 1, 0x5000));
  EXPECT_FALSE(map.map(IcmTable::cqc, 5, 6, 0x5000));
  EXPECT_FALSE(map.map(IcmTable::cqc, 0, 0, 0x5000));
  EXPECT_FALSE(map.map(IcmTable::cqc, 0xffffffff, 2, 0x5000));
  EXPECT_TRUE(map.map(IcmTable::cqc, 20, 1, 0x5000));
  EXPECT_EQ(map.address(IcmTable::cqc, 11), 0x1040u);
  EXPECT_FALSE(map.address(IcmTable::cqc, 9));
  EXPECT_FALSE(map.address(IcmTable::mpt, 11));
  EXPECT_FALSE(map.unmap(IcmTable::cqc, 10, 9));
  EXPECT_TRUE(map.unmap(IcmTable::cqc, 10, 10));
  EXPECT_FALSE(map.address(IcmTable::cqc, 11));
}

TEST(IcmMap, CoversRangesThatTouch) {
  IcmMap map(rnic_personality().layout.contexts);
  constexpr auto kMtt = IcmTable::mtt;
  EXPECT_TRUE(map.map(kMtt, 10, 10, 0x1000));
  EXPECT_TRUE(map.map(kMtt, 20, 5, 0x9000));
  EXPECT_TRUE(map.map(kMtt, 26, 4, 0x5000));
  EXPECT_TRUE(map.map(kMtt, 0xfffffff0, 16, 0xf000));
  EXPECT_FALSE(map.map(kMtt, 0xfffffff8, 1, 0x5000));
  for (const auto& [first, count] :
       {std::pair{10u, 15u}, {10u, 1u}, {24u, 1u}, {15u, 6u}, {26u, 4u}, {50u, 0u}, {0xfffffff0u, 16u}})
    EXPECT_TRUE(map.covers(kMtt, first, count)) << first << " " << count;
  for (const auto& [first, count] :
       {std::pair{9u, 2u}, {9u, 1u}, {10u, 16u}, {25u, 1u}, {24u, 3u}, {10u, 20u}, {30u, 1u}, {0xfffffff0u, 17u}})
    EXPECT_FALSE(map.covers(kMtt, first, count)) << first << " " << count;
  EXPECT_FALSE(map.covers(IcmTable::mpt, 10, 1));
}

template <class Context>
Context there_and_back(const Context& context) {
  std::array<std::byte, 256> bytes{};
  rnic_personality().encode(context, bytes);
  Context back;
  rnic_personality().decode(bytes, back);
  return back;
}

TEST(Contexts, SurviveTheirLayout) {
  const auto region = there_and_back(kMemory);
  EXPECT_EQ(region.key, kMemory.key);
  EXPECT_EQ(region.bus_address, kMemory.bus_address);
  EXPECT_TRUE(region.valid);
  const CompletionQueue cq{.log_entries = 5,
                           .ignore_overrun = true,
                           .uar_page = 9,
                           .pasid = 8,
                           .ring = 0x40,
                           .doorbell_record = 0x48,
                           .eqn = 2,
                           .producer = 77,
                           .armed = Arm::solicited};
  const auto back = there_and_back(cq);
  EXPECT_EQ(back.producer, 77u);
  EXPECT_EQ(back.armed, Arm::solicited);
  EXPECT_TRUE(back.ignore_overrun);
  const EventQueueContext eq{.log_entries = 6, .vector = 13, .pasid = 9, .ring = 0x80, .producer = 5, .consumer = 3};
  const auto event_queue = there_and_back(eq);
  EXPECT_EQ(event_queue.log_entries, 6u);
  EXPECT_EQ(event_queue.vector, 13u);
  EXPECT_EQ(event_queue.pasid, 9u);
  EXPECT_EQ(event_queue.ring, 0x80u);
  EXPECT_EQ(event_queue.producer, 5u);
  EXPECT_EQ(event_queue.consumer, 3u);
}

TEST(QpAttributes, TimersOfTheTables) {
  EXPECT_EQ(roce::ack_timeout(0).ps, (4096_ns).ps);
  EXPECT_EQ(roce::ack_timeout(14).ps, (4096_ns).ps << 14);
  EXPECT_EQ(roce::rnr_delay(1).ps, (10_us).ps);
  EXPECT_EQ(roce::rnr_delay(0).ps, (655360_us).ps);
  EXPECT_EQ(roce::rnr_delay(31).ps, (491520_us).ps);
}

TEST(QpAttributes, PortIsCheckedOnlyWhenNamed) {
  QpContext given;
  EXPECT_EQ(check_values(given, roce::attr::kState, {}), QpSyndrome::none);
  EXPECT_EQ(check_values(given, roce::attr::kPort, {}), QpSyndrome::port);
}

// A request for the event of one drain does not hold for the next drain.
TEST(QpAttributes, ADrainsEventIsAskedForEachTime) {
  QpCommand command{.kind = QpCommand::Kind::modify, .attributes = roce::attr::kState};
  QpContext context;
  context.transport = roce::Transport::rc;
  context.sqd_notify = 1;  // requested for an earlier drain
  command.context.state = roce::QpState::sqd;
  EXPECT_EQ(validate_modify(command, context, roce::QpState::rts, false, {}).context.sqd_notify, 0);
  command.attributes |= roce::attr::kSqdNotify;
  command.context.sqd_notify = 1;
  const auto drains = validate_modify(command, context, roce::QpState::rts, false, {});
  EXPECT_EQ(drains.refused, QpSyndrome::none);
  EXPECT_EQ(drains.context.sqd_notify, 1);
}

TEST(ScatterList, SlicesAcrossSegments) {
  const Regions regions = {{1, 100, 10}, {2, 200, 5}, {3, 300, 10}};
  const auto part = slice(regions, 8, 10);
  ASSERT_EQ(part.size(), 3u);
  EXPECT_EQ(part[0].address, 108u);
  EXPECT_EQ(part[0].length, 2u);
  EXPECT_EQ(part[1].length, 5u);
  EXPECT_EQ(part[2].length, 3u);
  EXPECT_TRUE(slice(regions, 25, 0).empty());
}

}  // namespace
}  // namespace rnicsim::nic

// SPDX-License-Identifier: Apache-2.0
// GIDs of a VLAN: do packets between two NICs have the right tags, do only NICs of the same VLAN accept them, and do
// credits return to the priority by PCP?
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "model/nic/packets/packet.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::SendOpcode;

constexpr std::uint16_t kVlan = 100;

class NicVlan : public Pair {
 protected:
  struct Seen {
    roce::Opcode opcode;
    VlanTag tag;
    std::uint32_t bytes;
  };

  // Marks each markable frame with CE.
  void start(std::uint16_t vlan_of_a, std::uint16_t vlan_of_b, std::uint8_t service_level, NicParams params = {}) {
    build(params);
    EXPECT_EQ(a().set_gid(vlan_of_a), CommandStatus::ok);
    EXPECT_EQ(b().set_gid(vlan_of_b), CommandStatus::ok);
    connect(3, [&](abi::Qpc& context) { context.path.service_level = service_level; });
    drop() = [this](Frame& frame) {
      if (const auto* packet = frame.as<Packet>())
        seen_.push_back({packet->headers.bth.opcode, frame.tag(), frame.size()});
      if (frame.is_markable()) frame.mark();
      return false;
    };
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    for (int i = 0; i < count; ++i) EXPECT_EQ(a().wait_status(kSendCqn, 1_s), CqeSyndrome::success);
  }

  std::vector<Seen> seen_;
};

TEST_F(NicVlan, EachPacketHasTheTag) {
  start(0, 0, 3);
  write(1);
  ASSERT_FALSE(seen_.empty());
  for (const auto& packet : seen_) EXPECT_FALSE(packet.tag);
  const auto plain = seen_.front().bytes;
  seen_.clear();
  NicParams params;
  params.congestion.ecn = "forced";
  params.congestion.control.name = "dcqcn";
  start(kVlan, kVlan, 3, params);
  write(4);
  run(20);
  bool answered = false, told = false;
  for (const auto& packet : seen_) {
    const bool cnp = packet.opcode == roce::Opcode::cnp;
    EXPECT_EQ(packet.tag.bits(), (cnp ? 6 : 3) << 13 | kVlan);
    answered = answered || packet.opcode == roce::Opcode::acknowledge;
    told = told || cnp;
  }
  EXPECT_TRUE(answered && told);
  EXPECT_EQ(seen_.front().bytes, plain + VlanTag::kBytes);
  EXPECT_EQ(a().nic.counters().engine.rp_cnp_handled, b().nic.counters().notification.np_cnp_sent);
}

// A service level has four bits, a PCP has three.
TEST_F(NicVlan, TheHighestBitOfTheServiceLevelIsNotSent) {
  start(kVlan, kVlan, 13);
  write(1);
  for (const auto& packet : seen_) EXPECT_EQ(packet.tag.pcp(), 5);
}

TEST_F(NicVlan, PacketsOfAnotherVlanAreDropped) {
  for (const std::uint16_t other : {std::uint16_t{200}, std::uint16_t{0}}) {
    start(kVlan, other, 0);
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    run(100);
    EXPECT_GT(b().nic.counters().rx.not_ours, 0u) << other;
    EXPECT_EQ(b().nic.counters().rx.packets, 0u) << other;
  }
}

// Sends more packets than a priority has credits: each credit returns to its priority, even if the GID's VLAN changes
// in between.
TEST_F(NicVlan, CreditsOfAPriorityByPcp) {
  NicParams params;
  params.port.priority.trust = "pcp";
  start(kVlan, kVlan, 5, params);
  const auto many = static_cast<int>(3 * params.tx.queue_packets);
  for (int sent = 0; sent < many; sent += 8) write(8);
  for (auto* node : {&a(), &b()}) EXPECT_EQ(node->set_gid(0), CommandStatus::ok);
  seen_.clear();
  for (int sent = 0; sent < many; sent += 8) write(8);
  for (const auto& packet : seen_) EXPECT_FALSE(packet.tag);
}

TEST_F(NicVlan, TheLastNumberIsReserved) {
  build({});
  EXPECT_EQ(a().set_gid(4094), CommandStatus::ok);
  EXPECT_NE(a().set_gid(4095), CommandStatus::ok);
}

}  // namespace
}  // namespace rnicsim::nic::test

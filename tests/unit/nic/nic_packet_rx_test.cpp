// SPDX-License-Identifier: Apache-2.0
// RoCE frames that become packets, and the facts that accompany them.
#include <gtest/gtest.h>

#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/nic/packets/receive/packet_rx.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::nic::packet_rx_test {
namespace {

constexpr roce::MacAddress kMac{2, 0, 0, 0, 0, 1};
const std::vector<std::byte> kBytes{std::byte{1}, std::byte{2}, std::byte{3}};

roce::Gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }
roce::Gid ipv6(std::uint8_t last) { return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}; }

roce::FrameAddresses between(const roce::Gid& from, const roce::Gid& to) {
  roce::FrameAddresses addresses;
  addresses.source = from;
  addresses.destination = to;
  addresses.source_mac = {2, 0, 0, 0, 0, 2};
  addresses.destination_mac = kMac;
  addresses.traffic_class = 0x5c;
  addresses.flow_label = 0x12345;
  addresses.hop_limit = 9;
  return addresses;
}

roce::Headers headers(roce::Opcode opcode, std::uint32_t qpn = 0x11) {
  roce::Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.destination = {qpn};
  if (roce::info(opcode).transport == roce::Transport::ud) headers.deth = roce::Deth{0x1ee7, {0x22}};
  return headers;
}

class PacketRxTest : public ::testing::Test {
 protected:
  PacketRxTest() {
    sc_core::sc_get_curr_simcontext()->reset();
    gids_.set(0, {ipv6(1), kMac, true});
    gids_.set(1, {ipv4(1), kMac, true});
    rx_ = std::make_unique<PacketRx>("rx", PacketRxParams{}, gids_, groups_);
    rx_->packet.bind([this](PacketIn&& packet) { packets_.push_back(std::move(packet)); });
  }

  // A frame from another NIC: in one piece, or divided at the payload as our NIC divides frames.
  void receive(const std::vector<std::byte>& bytes, bool cut) {
    const auto parsed = roce::parse_frame(bytes, bytes.size());
    const std::span all(bytes);
    rx_->receive({cut ? Frame::of(Payload::copy_of(all.first(parsed.payload_offset)),
                                  Payload::copy_of(all.subspan(parsed.payload_offset, parsed.payload_bytes)),
                                  all.subspan(parsed.payload_offset + parsed.payload_bytes))
                      : Frame::of(Payload::copy_of(bytes))});
  }

  GidTable gids_{4};
  MulticastTable groups_{{.groups = 4, .of_a_group = 4, .attached = 8}};
  std::unique_ptr<PacketRx> rx_;
  std::vector<PacketIn> packets_;
};

std::vector<std::byte> bytes_of(const Payload& payload) { return {payload.bytes().begin(), payload.bytes().end()}; }

TEST_F(PacketRxTest, DatagramOverIpv6BringsItsIpHeader) {
  const auto frame =
      sim::replay::test::frame_of(between(ipv6(2), ipv6(1)), headers(roce::Opcode::ud_send_only), kBytes);
  const std::vector<std::byte> header(frame.begin() + roce::kEthernetBytes,
                                      frame.begin() + roce::kEthernetBytes + roce::kIpv6Bytes);
  for (const bool cut : {true, false}) {
    receive(frame, cut);
    ASSERT_EQ(packets_.size(), 1u);
    EXPECT_EQ(bytes_of(packets_[0].grh), header);
    EXPECT_EQ(bytes_of(packets_[0].payload()), kBytes);
    packets_.clear();
  }
}

TEST_F(PacketRxTest, DatagramOverIpv4BringsItsIpHeaderBehindZeros) {
  const auto frame =
      sim::replay::test::frame_of(between(ipv4(2), ipv4(1)), headers(roce::Opcode::ud_send_only_imm), kBytes);
  std::vector<std::byte> header(roce::kGrhBytes - roce::kIpv4Bytes);
  header.insert(header.end(), frame.begin() + roce::kEthernetBytes,
                frame.begin() + roce::kEthernetBytes + roce::kIpv4Bytes);
  for (const bool cut : {true, false}) {
    receive(frame, cut);
    ASSERT_EQ(packets_.size(), 1u);
    EXPECT_EQ(bytes_of(packets_[0].grh), header);
    packets_.clear();
  }
}

// Telemetry follows the ICRC; the IP length does not include it.
TEST_F(PacketRxTest, TelemetryBehindAPacketComesWithIt) {
  Telemetry of_ports;
  of_ports.add({.rate = {100'000'000'000}, .at = {7'000}, .sent = 1280, .queue = 80, .id = 3});
  for (const auto& [block, v6] : {std::pair(of_ports, false),
                                  {of_ports, true},
                                  {Telemetry::delay_request(), false},
                                  {Telemetry::delay_request(), true}}) {
    std::vector<std::byte> bytes(block.size());
    block.put(bytes);
    const auto addresses = v6 ? between(ipv6(2), ipv6(1)) : between(ipv4(2), ipv4(1));
    auto frame = sim::replay::test::frame_of(addresses, headers(roce::Opcode::send_only), kBytes);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    receive(frame, false);
    ASSERT_EQ(packets_.size(), 1u);
    EXPECT_EQ(bytes_of(packets_[0].payload()), kBytes);
    ASSERT_NE(packets_[0].packet->telemetry(), nullptr);
    EXPECT_EQ(*packets_[0].packet->telemetry(), block);
    packets_.clear();
    // With one more byte it is an unknown Ethernet trailer.
    frame.push_back(std::byte{0});
    receive(frame, false);
    ASSERT_EQ(packets_.size(), 1u);
    EXPECT_EQ(packets_[0].packet->telemetry(), nullptr);
    packets_.clear();
  }
}

TEST_F(PacketRxTest, OtherTransportsBringNone) {
  for (const auto opcode : {roce::Opcode::send_only, roce::Opcode::uc_send_only}) {
    receive(sim::replay::test::frame_of(between(ipv4(2), ipv4(1)), headers(opcode), kBytes), true);
    ASSERT_EQ(packets_.size(), 1u);
    EXPECT_TRUE(packets_[0].grh.empty());
    packets_.clear();
  }
}

TEST_F(PacketRxTest, APacketSaysWhenceAndWhereItCame) {
  for (const auto& [from, to, index] : {std::tuple{ipv6(2), ipv6(1), 0u}, {ipv4(2), ipv4(1), 1u}})
    for (const bool cut : {true, false}) {
      receive(sim::replay::test::frame_of(between(from, to), headers(roce::Opcode::send_only), kBytes), cut);
      ASSERT_EQ(packets_.size(), 1u);
      EXPECT_EQ(packets_[0].packet->addresses.source, from);
      EXPECT_EQ(packets_[0].gid_index, index);
      packets_.clear();
    }
}

TEST_F(PacketRxTest, AnAddressStandsInTheTableOnce) {
  EXPECT_EQ(gids_.set(2, {ipv4(1), kMac, true}), GidTable::Set::exists);
  EXPECT_EQ(gids_.set(1, {ipv4(1), kMac, true}), GidTable::Set::done) << "it stays where it is";
  EXPECT_EQ(gids_.set(2, {ipv4(1), {2, 0, 0, 0, 0, 9}, true}), GidTable::Set::done) << "of another interface";
  EXPECT_EQ(gids_.set(2, {ipv4(1), kMac, false}), GidTable::Set::done);
  EXPECT_EQ(gids_.set(4, {ipv4(4), kMac, true}), GidTable::Set::beyond_table);
}

TEST_F(PacketRxTest, AnAddressIsFoundWhateverStandsBehindIt) {
  gids_.set(3, {ipv4(4), kMac, true});
  EXPECT_EQ(gids_.index_of(ipv4(4), kMac), 3);
  gids_.set(3, {ipv4(4), kMac, false});
  EXPECT_EQ(gids_.index_of(ipv4(4), kMac), std::nullopt);
  EXPECT_EQ(gids_.index_of(ipv4(1), kMac), 1);
  for (std::size_t byte = 0; byte < kMac.size(); ++byte) {
    auto other = kMac;
    ++other[byte];
    EXPECT_EQ(gids_.index_of(ipv4(1), other), std::nullopt) << byte;
  }
  for (std::size_t byte = 0; byte < ipv4(1).size(); ++byte) {
    auto other = ipv4(1);
    ++other[byte];
    EXPECT_EQ(gids_.index_of(other, kMac), std::nullopt) << byte;
  }
  gids_.clear();
  EXPECT_EQ(gids_.index_of(ipv4(1), kMac), std::nullopt);
  gids_.set(2, {ipv4(1), kMac, true});
  EXPECT_EQ(gids_.index_of(ipv4(1), kMac), 2);
}

// The same address without a VLAN, and in two VLANs.
TEST_F(PacketRxTest, TheTableHasAnAddressOnceForEachVlan) {
  EXPECT_EQ(gids_.set(2, {ipv4(1), kMac, true, 100}), GidTable::Set::done);
  EXPECT_EQ(gids_.set(3, {ipv4(1), kMac, true, 100}), GidTable::Set::exists);
  EXPECT_EQ(gids_.set(3, {ipv4(1), kMac, true, 200}), GidTable::Set::done);
  for (const auto& [vlan, index] : {std::pair<std::uint16_t, int>{roce::kNoVlan, 1}, {0, 1}, {100, 2}, {200, 3}})
    EXPECT_EQ(gids_.index_of(ipv4(1), kMac, vlan), index) << vlan;
  EXPECT_EQ(gids_.index_of(ipv4(1), kMac, 300), std::nullopt);
}

TEST_F(PacketRxTest, ATagSelectsTheAddressOfItsVlan) {
  gids_.set(2, {ipv4(1), kMac, true, 100});
  for (const auto& [vlan, index] : {std::pair<std::uint16_t, int>{roce::kNoVlan, 1}, {0, 1}, {100, 2}, {300, -1}})
    for (const bool cut : {true, false}) {
      auto addresses = between(ipv4(2), ipv4(1));
      addresses.vlan = vlan;
      addresses.service_level = 5;
      receive(sim::replay::test::frame_of(addresses, headers(roce::Opcode::ud_send_only), kBytes), cut);
      ASSERT_EQ(packets_.size(), index < 0 ? 0u : 1u) << vlan;
      if (index < 0) continue;
      EXPECT_EQ(packets_[0].gid_index, index) << vlan;
      EXPECT_EQ(packets_[0].packet->addresses.vlan, vlan);
      EXPECT_EQ(packets_[0].grh.bytes()[20], std::byte{0x45}) << "the IP header, not the tag";
      packets_.clear();
    }
}

TEST_F(PacketRxTest, WhatIsForAnotherIsDropped) {
  receive(sim::replay::test::frame_of(between(ipv4(2), ipv4(3)), headers(roce::Opcode::ud_send_only), kBytes), true);
  EXPECT_TRUE(packets_.empty());
  EXPECT_EQ(rx_->counters().not_ours, 1u);
}

// --- Groups.

const roce::Gid kGroup{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 129, 2, 3};

std::vector<std::byte> to_group(const roce::Gid& group, const roce::MacAddress& mac, roce::Opcode opcode,
                                std::uint32_t qpn = roce::kMulticastQpn) {
  auto addresses = between(ipv4(2), group);
  addresses.destination_mac = mac;
  return sim::replay::test::frame_of(addresses, headers(opcode, qpn), kBytes);
}

constexpr roce::MacAddress kGroupMac{1, 0, 0x5e, 1, 2, 3};

TEST_F(PacketRxTest, EachMemberGetsItsCopyInTheOrderOfAttachment) {
  for (const std::uint32_t qpn : {0x40, 0x12, 0x33}) ASSERT_TRUE(groups_.attach(kGroup, {qpn}));
  receive(to_group(kGroup, kGroupMac, roce::Opcode::ud_send_only), true);
  ASSERT_EQ(packets_.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(packets_[i].destination.value, (std::array{0x40u, 0x12u, 0x33u})[i]);
    EXPECT_EQ(bytes_of(packets_[i].payload()), kBytes);
    EXPECT_EQ(packets_[i].payload().bytes().data(), packets_[0].payload().bytes().data()) << "payload is shared";
    EXPECT_EQ(packets_[i].grh.size(), roce::kGrhBytes);
    EXPECT_EQ(packets_[i].headers().deth->qkey, 0x1ee7u);
  }
  EXPECT_EQ(rx_->counters().packets, 1u);
}

TEST_F(PacketRxTest, OverIpv6) {
  const roce::Gid group{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 2, 3, 4};
  groups_.attach(group, {0x40});
  auto addresses = between(ipv6(2), group);
  addresses.destination_mac = {0x33, 0x33, 0x81, 2, 3, 4};
  const auto all = headers(roce::Opcode::ud_send_only, roce::kMulticastQpn);
  receive(sim::replay::test::frame_of(addresses, all, kBytes), true);
  EXPECT_EQ(packets_.size(), 1u);
}

TEST_F(PacketRxTest, WhatIsForNoGroupOfOursIsDropped) {
  groups_.attach(kGroup, {0x40});
  auto other = kGroup;
  other[15] = 4;
  const auto ud = roce::Opcode::ud_send_only;
  receive(to_group(other, {1, 0, 0x5e, 1, 2, 4}, ud), true);            // another group
  receive(to_group(kGroup, {1, 0, 0x5e, 1, 2, 4}, ud), true);           // another group's MAC
  receive(to_group(kGroup, kMac, ud), true);                            // a host's MAC
  receive(to_group(kGroup, kGroupMac, ud, 0x40), true);                 // a single QP of the group
  receive(to_group(kGroup, kGroupMac, roce::Opcode::send_only), true);  // no datagram
  receive(to_group(ipv4(1), kMac, ud), true);                           // all QPs, at this host's address
  groups_.detach(kGroup, {0x40});
  receive(to_group(kGroup, kGroupMac, ud), true);
  EXPECT_TRUE(packets_.empty());
  EXPECT_EQ(rx_->counters().not_ours, 7u);
}

}  // namespace
}  // namespace rnicsim::nic::packet_rx_test

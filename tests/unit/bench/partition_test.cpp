// SPDX-License-Identifier: Apache-2.0
// Assignment of nodes to processes, and the transfer of frames between processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "model/nic/packets/frame_transfer.h"
#include "model/nic/packets/packet.h"
#include "sim/config/sized_topology.h"
#include "sim/processes/partition.h"

namespace rnicsim::sim {
namespace {

std::vector<std::byte> bytes_of(const Frame& frame) {
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  return bytes;
}

Frame carried(const Frame& frame) {
  std::vector<std::byte> message;
  ByteWriter out(message);
  nic::put_frame(out, frame);
  ByteReader in(message);
  auto arrived = nic::take_frame(in);
  EXPECT_TRUE(in.at_end());
  // A shorter message is refused.
  for (std::size_t length = 0; length < message.size(); ++length) {
    ByteReader part({message.data(), length});
    EXPECT_THROW(nic::take_frame(part), std::runtime_error) << length;
  }
  return arrived;
}

Frame packet(bool without_payload) {
  const auto made = nic::Packet::make();
  made->headers.bth.opcode = roce::Opcode::send_only;
  made->headers.bth.psn = roce::Psn{0x123456};
  made->addresses.destination_mac = {2, 0, 0, 0, 0, 9};
  made->addresses.traffic_class = 0x68;
  Payload payload(13);
  std::ranges::fill(payload.writable(), std::byte{0xa5});
  made->put(std::move(payload));
  made->seal(77, without_payload);
  return Frame(made);
}

TEST(FrameTransfer, APacketIsWhatItsSenderMeant) {
  for (const bool without_payload : {false, true}) {
    const auto sent = packet(without_payload);
    const auto arrived = carried(sent);
    ASSERT_NE(arrived.as<nic::Packet>(), nullptr);
    EXPECT_EQ(arrived.id(), 77u);
    EXPECT_EQ(arrived.size(), sent.size());
    EXPECT_EQ(arrived.traffic_class(), sent.traffic_class());
    EXPECT_EQ(arrived.destination_mac(), sent.destination_mac());
    if (without_payload) continue;
    EXPECT_EQ(bytes_of(arrived), bytes_of(sent));
  }
}

TEST(FrameTransfer, AnythingElseIsItsBytes) {
  const std::array trailer{std::byte{7}, std::byte{8}};
  const auto sent = Frame::of(Payload::copy_of(bytes_of(packet(false))), packet(false).payload(), trailer, 5);
  const auto arrived = carried(sent);
  EXPECT_EQ(arrived.as<nic::Packet>(), nullptr);
  EXPECT_EQ(arrived.id(), 5u);
  EXPECT_EQ(bytes_of(arrived), bytes_of(sent));
}

TEST(Partition, EqualBlocksOfHostsWithTheirSwitches) {
  const auto topology = sized_topology("leaf-spine:4,2,3");
  ASSERT_TRUE(topology);
  const auto owners = partition(*topology, 2);
  ASSERT_EQ(owners.size(), topology->nodes());
  for (std::uint32_t host = 0; host < 12; ++host) EXPECT_EQ(owners[host], host / 6) << host;
  // Each leaf is in the process of its hosts, and each process has a spine.
  for (const auto& [from, to] : topology->cables) {
    if (topology->is_switch(from) && topology->is_switch(to)) continue;
    EXPECT_EQ(owners[from], owners[to]);
  }
  EXPECT_EQ(std::ranges::count(owners, 0u), std::ranges::count(owners, 1u));
}

}  // namespace
}  // namespace rnicsim::sim

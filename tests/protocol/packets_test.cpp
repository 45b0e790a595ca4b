// SPDX-License-Identifier: Apache-2.0
// Exactly the expected packets are on the wire.
#include <gmock/gmock.h>

#include <boost/crc.hpp>
#include <cstring>

#include "model/abi/big_endian.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing::packets_test {
namespace {

using ::testing::ElementsAreArray;

// Offsets in a RoCEv2 frame over IPv4, and the opcodes of RC (IBTA vol 1, table 38).
constexpr std::size_t kIp = 14, kUdp = kIp + 20, kBth = kUdp + 8, kAfterBth = kBth + 12;
constexpr std::size_t kIcrcBytes = 4;
enum Opcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_only = 0x04,
  send_only_imm = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_imm = 0x09,
  write_only = 0x0a,
  read_request = 0x0c,
  read_first = 0x0d,
  read_middle = 0x0e,
  read_last = 0x0f,
  read_only = 0x10,
  acknowledge = 0x11,
};

struct Packet {
  std::uint32_t from;
  std::uint8_t opcode;
  std::uint32_t psn;
  std::uint32_t payload;  // bytes, with extended headers and pad
  bool operator==(const Packet&) const = default;
};
void PrintTo(const Packet& packet, std::ostream* out) {
  *out << "h" << packet.from << " opcode " << int(packet.opcode) << " psn " << packet.psn << " bytes "
       << packet.payload;
}

std::uint8_t byte_at(const WireFrame& frame, std::size_t at) { return std::uint8_t(frame.bytes[at]); }
Packet parse(const WireFrame& frame) {
  return {frame.from, byte_at(frame, kBth), abi::load_be<std::uint32_t>(&frame.bytes[kBth + 8]) & 0xffffff,
          static_cast<std::uint32_t>(frame.bytes.size() - kAfterBth - kIcrcBytes)};
}

// RoCEv2 annex A17: fields that routers may change count as ones.
std::uint32_t icrc_of(const WireFrame& frame) {
  auto bytes = frame.bytes;
  bytes.erase(bytes.begin(), bytes.begin() + kIp);
  for (const std::size_t variant : {std::size_t{1}, std::size_t{8}, std::size_t{10}, std::size_t{11}, kUdp - kIp + 6,
                                    kUdp - kIp + 7, kBth - kIp + 4})
    bytes[variant] = std::byte(0xff);
  bytes.insert(bytes.begin(), 8, std::byte(0xff));
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size() - kIcrcBytes);
  return crc.checksum();
}

class Packets : public TwoHosts {
 protected:
  static constexpr std::uint32_t kPsn = 0xfffffe;  // wraps within a message

  // h0 runs one request until it completes; h1 has posted a receive.
  void run_one(ibv_wr_opcode opcode, std::uint32_t length, ibv_mtu mtu) {
    EndpointOptions options;
    options.mtu = mtu;
    options.psn = kPsn;
    options.qp_access |= IBV_ACCESS_REMOTE_READ;
    Exchange<EndpointAddress> addresses;
    run(
        [&] {
          Endpoint end(options);
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          auto wr = end.request(opcode, 0, length);
          wr.imm_data = 0x01020304;
          ASSERT_EQ(end.post(wr), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);
        },
        [&] {
          Endpoint end(options);
          end.connect(addresses.swap(1, end.address()));
          ASSERT_EQ(end.receive(0, 60'000), 0);
          meet(1);
          meet(1);
        });
  }

  void expect_packets(const std::vector<Packet>& expected) {
    std::vector<Packet> seen;
    for (const auto& frame : wire()) seen.push_back(parse(frame));
    EXPECT_THAT(seen, ElementsAreArray(expected));
    for (const auto& frame : wire()) {
      std::uint32_t icrc;
      std::memcpy(&icrc, frame.bytes.data() + frame.bytes.size() - kIcrcBytes, sizeof icrc);
      EXPECT_EQ(icrc, icrc_of(frame));
    }
  }

  static constexpr std::uint32_t psn(std::uint32_t n) { return (kPsn + n) & 0xffffff; }
  static constexpr std::uint32_t kReth = 16, kImm = 4, kAeth = 4;
};

TEST_F(Packets, SendOfThreeAndABit) {
  run_one(IBV_WR_SEND, 3000, IBV_MTU_1024);
  expect_packets({{0, send_first, psn(0), 1024},
                  {0, send_middle, psn(1), 1024},
                  {0, send_last, psn(2), 952},
                  {1, acknowledge, psn(2), kAeth}});
}

TEST_F(Packets, SendOfOneMtu) {
  run_one(IBV_WR_SEND, 4096, IBV_MTU_4096);
  expect_packets({{0, send_only, psn(0), 4096}, {1, acknowledge, psn(0), kAeth}});
}

TEST_F(Packets, AnOddSendIsPadded) {
  run_one(IBV_WR_SEND_WITH_IMM, 5, IBV_MTU_1024);
  expect_packets({{0, send_only_imm, psn(0), kImm + 8}, {1, acknowledge, psn(0), kAeth}});
  EXPECT_EQ(byte_at(wire()[0], kBth + 1) >> 4 & 3, 3);
}

TEST_F(Packets, WriteOverMtu4096) {
  run_one(IBV_WR_RDMA_WRITE, 8193, IBV_MTU_4096);
  expect_packets({{0, write_first, psn(0), kReth + 4096},
                  {0, write_middle, psn(1), 4096},
                  {0, write_last, psn(2), 4},
                  {1, acknowledge, psn(2), kAeth}});
}

TEST_F(Packets, WriteWithImmediate) {
  run_one(IBV_WR_RDMA_WRITE_WITH_IMM, 2000, IBV_MTU_1024);
  expect_packets({{0, write_first, psn(0), kReth + 1024},
                  {0, write_last_imm, psn(1), kImm + 976},
                  {1, acknowledge, psn(1), kAeth}});
}

TEST_F(Packets, ReadOverMtu1024) {
  run_one(IBV_WR_RDMA_READ, 3072, IBV_MTU_1024);
  expect_packets({{0, read_request, psn(0), kReth},
                  {1, read_first, psn(0), kAeth + 1024},
                  {1, read_middle, psn(1), 1024},
                  {1, read_last, psn(2), kAeth + 1024}});
}

TEST_F(Packets, ReadOfNothing) {
  run_one(IBV_WR_RDMA_READ, 0, IBV_MTU_1024);
  expect_packets({{0, read_request, psn(0), kReth}, {1, read_only, psn(0), kAeth}});
}

TEST_F(Packets, AddressesOfBothHosts) {
  run_one(IBV_WR_RDMA_WRITE, 8, IBV_MTU_1024);
  ASSERT_EQ(wire().size(), 2u);
  for (const auto& frame : wire()) {
    const auto& from = host(frame.from).interface();
    const auto& to = host(1 - frame.from).interface();
    EXPECT_EQ(std::memcmp(&frame.bytes[0], to.mac, 6), 0);
    EXPECT_EQ(std::memcmp(&frame.bytes[6], from.mac, 6), 0);
    EXPECT_EQ(abi::load_be<std::uint16_t>(&frame.bytes[12]), 0x0800);
    EXPECT_EQ(abi::load_be<std::uint16_t>(&frame.bytes[kIp + 2]), frame.bytes.size() - kIp);
    EXPECT_EQ(std::memcmp(&frame.bytes[kIp + 12], from.ipv4, 4), 0);
    EXPECT_EQ(std::memcmp(&frame.bytes[kIp + 16], to.ipv4, 4), 0);
    EXPECT_EQ(abi::load_be<std::uint16_t>(&frame.bytes[kUdp + 2]), 4791);
    EXPECT_EQ(abi::load_be<std::uint16_t>(&frame.bytes[kUdp + 4]), frame.bytes.size() - kUdp);
  }
}

}  // namespace
}  // namespace rnicsim::testing::packets_test

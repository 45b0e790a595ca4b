// SPDX-License-Identifier: Apache-2.0
// UC on the wire: exactly the expected packets, no answers, and hostile packets of a forged peer.
#include <gmock/gmock.h>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/protocol/unreliable_wire.h"

namespace rnicsim::testing::uc_test {
namespace {

using roce::Opcode;
using ::testing::ElementsAreArray;

class UcWire : public UnreliableWire {
 protected:
  static EndpointOptions uc(std::uint8_t gid_index = 1) { return of_type(IBV_QPT_UC, gid_index); }
};

// --- Packets.
struct Message {
  const char* name;
  ibv_wr_opcode operation;
  std::uint32_t bytes;
  std::vector<std::pair<Opcode, std::uint32_t>> packets;  // packets with their payload bytes
};
void PrintTo(const Message& message, std::ostream* out) { *out << message.name; }

class UcPackets : public UcWire, public ::testing::WithParamInterface<Message> {};

TEST_P(UcPackets, AreTheseAndNoOthers) {
  const auto& message = GetParam();
  std::uint32_t to = 0;
  EndpointAddress memory;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        auto wr = end.request(message.operation, 0, message.bytes, 256);
        wr.imm_data = htobe32(0x01020304);
        complete(end, wr);
        pass(0, kSettled);
      },
      [&](Endpoint& end) {
        to = end.qp->qp_num;
        memory = end.address();
        ASSERT_EQ(end.receive(0, 60'000), 0);
        meet(1);
      },
      uc(), uc());
  const auto packets = sent();
  std::vector<std::pair<Opcode, std::uint32_t>> seen;
  for (const auto& packet : packets) seen.emplace_back(packet.opcode(), packet.payload);
  EXPECT_THAT(seen, ElementsAreArray(message.packets));
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    const auto& headers = packets[i].headers;
    EXPECT_EQ(packets[i].from, 0u);
    EXPECT_EQ(packets[i].psn(), (kPsn + i) & 0xffffff);
    EXPECT_EQ(headers.bth.destination.value, to);
    EXPECT_FALSE(headers.bth.ack_request);
    EXPECT_EQ(headers.bth.pkey, 0xffff);
    EXPECT_EQ(headers.bth.pad, -packets[i].payload & 3);
    const auto& row = roce::info(packets[i].opcode());
    if (row.has(roce::header::kReth)) {
      EXPECT_EQ(*headers.reth, (roce::Reth{memory.buffer + 256, {memory.rkey}, message.bytes}));
    }
    if (row.has(roce::header::kImmediate)) {
      EXPECT_EQ(headers.immediate, 0x01020304u);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Of, UcPackets,
    ::testing::Values(Message{"send_of_nothing", IBV_WR_SEND, 0, {{Opcode::uc_send_only, 0}}},
                      Message{"odd_send", IBV_WR_SEND, 5, {{Opcode::uc_send_only, 5}}},
                      Message{"send_imm", IBV_WR_SEND_WITH_IMM, 1024, {{Opcode::uc_send_only_imm, 1024}}},
                      Message{
                          "long_send",
                          IBV_WR_SEND,
                          3000,
                          {{Opcode::uc_send_first, 1024}, {Opcode::uc_send_middle, 1024}, {Opcode::uc_send_last, 952}}},
                      Message{"long_send_imm",
                              IBV_WR_SEND_WITH_IMM,
                              2048,
                              {{Opcode::uc_send_first, 1024}, {Opcode::uc_send_last_imm, 1024}}},
                      Message{"write", IBV_WR_RDMA_WRITE, 8, {{Opcode::uc_write_only, 8}}},
                      Message{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0, {{Opcode::uc_write_only_imm, 0}}},
                      Message{"long_write",
                              IBV_WR_RDMA_WRITE,
                              4097,
                              {{Opcode::uc_write_first, 1024},
                               {Opcode::uc_write_middle, 1024},
                               {Opcode::uc_write_middle, 1024},
                               {Opcode::uc_write_middle, 1024},
                               {Opcode::uc_write_last, 1}}},
                      Message{"long_write_imm",
                              IBV_WR_RDMA_WRITE_WITH_IMM,
                              1025,
                              {{Opcode::uc_write_first, 1024}, {Opcode::uc_write_last_imm, 1}}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(UcWire, PacketsOfAConnectionTakeOnePath) {
  run_connected([&](Endpoint& end) { complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 3000)); }, [](Endpoint&) {}, uc(0),
                uc(0));
  ASSERT_EQ(wire().size(), 3u);
  std::vector<std::uint16_t> ports;
  for (const auto& frame : wire()) {
    const auto addresses = roce::parse_frame(frame.bytes, frame.bytes.size()).addresses;
    EXPECT_FALSE(roce::is_ipv4_mapped(addresses.source));
    EXPECT_EQ(addresses.hop_limit, 64);
    EXPECT_GE(addresses.source_port, roce::kLeastSourcePort);
    ports.push_back(addresses.source_port);
  }
  EXPECT_THAT(ports, ::testing::Each(ports.front()));
}

TEST_F(UcWire, ToItselfNothingIsOnTheWire) {
  run_alone(
      [&](Endpoint& end) {
        end.connect(end.address());
        ASSERT_EQ(end.receive(8192, 4000), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 3000)), 0);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      uc());
  EXPECT_TRUE(wire().empty());
  EXPECT_EQ(host(0).nic().counters().loopback.frames, 3u);
}

// --- Hostile packets: dropped and counted, without an answer; the connection continues.
struct Hostile {
  const char* name;
  Opcode opcode;
  std::uint32_t payload;
  std::uint32_t length;  // DMA length in the RETH
  Counted counted;
  std::uint32_t rkey_change = 0;
  std::uint16_t pkey = 0xffff;
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class UcHostile : public UcWire, public ::testing::WithParamInterface<Hostile> {};

TEST_P(UcHostile, IsDroppedAndCounted) {
  const auto& hostile = GetParam();
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 64));
        pass(0, kSettled);
        const auto target = end.request(IBV_WR_RDMA_WRITE, 0, 0, 4096).wr.rdma;
        auto headers = requests().front().headers;
        headers.bth.opcode = hostile.opcode;
        headers.bth.psn = roce::Psn(kPsn + 1);
        headers.bth.pkey = hostile.pkey;
        headers.reth = roce::Reth{target.remote_addr, {target.rkey ^ hostile.rkey_change}, hostile.length};
        headers.deth = roce::Deth{0, {end.qp->qp_num}};
        headers.aeth = roce::Aeth{};
        forge(1, headers, hostile.payload);
        pass(0, kSettled);
        EXPECT_EQ(counter(hostile.counted), 1u);
        complete(end, end.request(IBV_WR_SEND, 0, 2000));
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(end.receive(8192, 2000, 1), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.byte_len, 2000u);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        EXPECT_EQ(std::ranges::count(end.buffer, 0xf0), 0);
        for (const auto event : take_async_events(end.context)) EXPECT_EQ(event, IBV_EVENT_COMM_EST);
      },
      uc(), uc());
  for (const auto& frame : wire()) EXPECT_EQ(frame.from, 0u) << "an answer";
}
INSTANTIATE_TEST_SUITE_P(
    Of, UcHostile,
    ::testing::Values(Hostile{"rc_send", Opcode::send_only, 64, 0, Counted::wrong_state},
                      Hostile{"rc_write", Opcode::write_only, 64, 64, Counted::wrong_state},
                      Hostile{"rc_read", Opcode::read_request, 0, 64, Counted::wrong_state},
                      Hostile{"rc_ack", Opcode::acknowledge, 0, 0, Counted::wrong_state},
                      Hostile{"ud_send", Opcode::ud_send_only, 64, 0, Counted::wrong_state},
                      Hostile{"send_middle", Opcode::uc_send_middle, 1024, 0, Counted::out_of_sequence},
                      Hostile{"send_last", Opcode::uc_send_last_imm, 8, 0, Counted::out_of_sequence},
                      Hostile{"write_last", Opcode::uc_write_last, 8, 0, Counted::out_of_sequence},
                      Hostile{"send_first_short", Opcode::uc_send_first, 1020, 0, Counted::unfit},
                      Hostile{"send_beyond_mtu", Opcode::uc_send_only, 1028, 0, Counted::unfit},
                      Hostile{"write_only_less", Opcode::uc_write_only, 8, 16, Counted::unfit},
                      Hostile{"write_only_more", Opcode::uc_write_only, 16, 8, Counted::unfit},
                      Hostile{"write_first_all", Opcode::uc_write_first, 1024, 1024, Counted::unfit},
                      Hostile{"write_too_long", Opcode::uc_write_first, 1024, 0xffffffff, Counted::unfit},
                      Hostile{"write_beyond", Opcode::uc_write_first, 1024, 1 << 20, Counted::unfit},
                      Hostile{"write_bad_rkey", Opcode::uc_write_only, 64, 64, Counted::unfit, 1},
                      Hostile{"bad_pkey", Opcode::uc_write_only, 64, 64, Counted::bad_pkey, 0, 0x8001}),
    [](const auto& info) { return std::string(info.param.name); });

// A packet from another host is not accepted as the peer's.
TEST_F(UcWire, AStrangerIsNotHeard) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 64));
        pass(0, kSettled);
        auto headers = requests().front().headers;
        headers.bth.psn = roce::Psn(kPsn + 1);
        auto addresses = addresses_to(1);
        ++addresses.source.back();
        forge(1, addresses, headers, 64);
        pass(0, kSettled);
        EXPECT_EQ(counter(Counted::wrong_path), 1u);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        meet(1);
        EXPECT_EQ(std::ranges::count(end.buffer, 0xf0), 0);
      },
      uc(), uc());
}

}  // namespace
}  // namespace rnicsim::testing::uc_test

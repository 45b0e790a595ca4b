// SPDX-License-Identifier: Apache-2.0
// A SEND's payload within the CQE: layout of the CQE, which is the only write to memory.
#include "model/nic/engine/qp_context.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::Cqe;
using abi::SendOpcode;

constexpr std::uint32_t kMost = sizeof(Cqe::inline_data);

class InlineReceive : public Pair {
 protected:
  // b's QP accepts payloads up to `inline_receive` bytes in its CQEs.
  void connect_with(std::uint8_t inline_receive) {
    EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
    EXPECT_EQ(b().create_qp_anew([=](abi::Qpc& c) { c.inline_receive = inline_receive; }), CommandStatus::ok);
    connect();
    a().fill(1);
    b().nic.engine().trace().request_taken.subscribe([this](const RequestTaken&) { taken_ = now(); });
  }

  struct Arrival {
    Cqe cqe;
    std::uint64_t writes;  // writes of the device to memory
    Duration after;        // from the request's arrival to the CQE in memory
    bool in_buffer;        // the payload is in the receive's buffer
  };
  Arrival send(std::uint32_t length, SendOpcode opcode = SendOpcode::send) {
    std::ranges::fill(std::span(b().host.at(b().buffer), 4096), std::byte{0xee});
    b().post_receive(b().buffer, 4096);
    run(10);
    const auto writes = b().nic.counters().dma.writes;
    b().host.landed.clear();
    a().post_send({.opcode = opcode, .length = length, .immediate = 0x1234});
    const auto cqe = b().wait(kReceiveCqn);
    EXPECT_TRUE(cqe);
    EXPECT_EQ(cqe->byte_count, length);
    EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::success);
    return {*cqe, b().nic.counters().dma.writes - writes, b().host.landed.back().second - taken_,
            std::memcmp(b().host.at(b().buffer), a().host.at(a().buffer), length) == 0};
  }
  bool carries(const Cqe& cqe) {
    return (cqe.flags & Cqe::kInlineData) != 0 &&
           std::memcmp(cqe.inline_data, a().host.at(a().buffer), cqe.byte_count) == 0;
  }

 private:
  Duration taken_;
};

TEST_F(InlineReceive, OneWriteUpToTheLimitAndTwoBeyond) {
  connect_with(24);
  send(8);  // fetches receives and contexts
  for (const std::uint32_t length : {1u, 24u}) {
    const auto arrival = send(length);
    EXPECT_EQ(arrival.writes, 1u);
    EXPECT_TRUE(carries(arrival.cqe));
    EXPECT_FALSE(arrival.in_buffer);
  }
  for (const std::uint32_t length : {25u, 1024u, 1025u}) {  // the last in two packets, with two writes
    const auto arrival = send(length);
    EXPECT_EQ(arrival.writes, length <= 1024 ? 2u : 3u);
    EXPECT_EQ(arrival.cqe.flags, 0);
    EXPECT_TRUE(arrival.in_buffer);
  }
  EXPECT_EQ(b().nic.counters().completion.inline_cqes, 3u);
}

TEST_F(InlineReceive, OneWritesTime) {
  connect_with(kMost);
  send(8);
  const PcieLink link{PcieLinkParams{}};
  const auto svc = [&](std::uint32_t bytes) { return link.time_for(link.write(0, bytes)); };
  const auto latency = DmaParams{}.write_latency;
  EXPECT_EQ(send(kMost).after, svc(sizeof(Cqe)) + latency);
  EXPECT_EQ(send(kMost + 1).after, svc(kMost + 1) + latency + svc(sizeof(Cqe)));
}

TEST_F(InlineReceive, OtherFieldsAsEver) {
  connect_with(kMost);
  const auto cqe = send(kMost, SendOpcode::send_with_imm).cqe;
  EXPECT_TRUE(carries(cqe));
  EXPECT_EQ(cqe.opcode_owner >> 4, int(abi::CqeOpcode::receive_send_with_imm));
  EXPECT_EQ(cqe.immediate, 0x1234u);
  EXPECT_EQ(cqe.qpn, kQpn);
  EXPECT_EQ(send(kMost).cqe.wqe_counter, 1u);
}

TEST_F(InlineReceive, NothingHasNoData) {
  connect_with(kMost);
  const auto arrival = send(0);
  EXPECT_EQ(arrival.writes, 1u);
  EXPECT_EQ(arrival.cqe.flags, 0);
}

TEST_F(InlineReceive, OffAtZero) {
  connect_with(0);
  send(8);
  EXPECT_EQ(send(1).writes, 2u);
}

TEST_F(InlineReceive, ADeviceHasALimit) {
  NicParams params;
  params.capabilities.max_inline_receive = 16;
  build(params);
  EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(b().create_qp_anew([](abi::Qpc& c) { c.inline_receive = 17; }), CommandStatus::bad_parameter);
  EXPECT_EQ(b().output<abi::CommandResult>().syndrome, std::uint32_t(QpSyndrome::inline_receive));
  EXPECT_EQ(b().create_qp_anew([](abi::Qpc& c) { c.inline_receive = 16; }), CommandStatus::ok);
  abi::CommandHeader query;
  query.opcode = std::uint16_t(abi::CommandOpcode::query_device);
  EXPECT_EQ(b().command(query), CommandStatus::ok);
  EXPECT_EQ(b().output<abi::DeviceCapabilities>().max_inline_receive, 16u);
}

}  // namespace
}  // namespace rnicsim::nic::test

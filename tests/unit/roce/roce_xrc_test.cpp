// SPDX-License-Identifier: Apache-2.0
// Both XRC ends: packets of a send QP, and the answers of a receive QP.
#include <gtest/gtest.h>

#include <array>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responders/responder.h"

namespace rnicsim::roce::xrc_test {
namespace {

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kSrqn = 0x0abcde;
constexpr std::uint32_t kDomain = 17;

class Xrc : public ::testing::Test {
 protected:
  Xrc() {
    window.start({.transport = Transport::xrc_send,
                  .remote = {7},
                  .mtu = kMtu,
                  .max_rd_atomic = 4,
                  .retry_count = 7,
                  .rnr_retry = 7},
                 Psn(0));
    expect_from(Psn(0));
  }
  void expect_from(Psn psn) {
    responder.start({.transport = Transport::xrc_recv,
                     .mtu = kMtu,
                     .access = remote_access::kWrite | remote_access::kRead | remote_access::kAtomic,
                     .max_dest_rd_atomic = 4},
                    psn);
  }
  // The packets of one message.
  std::vector<RequestPacket> packets(SendOperation operation, std::uint32_t length, std::uint32_t srqn = kSrqn,
                                     std::optional<std::uint32_t> immediate = {}) {
    window.post({.id = next_id_++,
                 .operation = operation,
                 .length = length,
                 .remote_address = 0x1000,
                 .rkey = {5},
                 .immediate = immediate,
                 .srqn = srqn});
    std::vector<RequestPacket> all;
    while (auto packet = requester.next_packet()) all.push_back(*packet);
    return all;
  }
  // Gives a responder a packet, and everything that it asks for.
  Verdict validate(const RequestPacket& packet) {
    wanted_queue = wanted_receive = false;
    Offer offer{.domain = kDomain, .receive_bytes = 1 << 20};
    for (;;) {
      const auto verdict = responder.receive(packet.headers, packet.payload, offer);
      if (verdict.kind == Verdict::Kind::wants_queue) {
        wanted_queue = true;
        offer.queue = queue;
      } else if (verdict.kind == Verdict::Kind::wants_receive) {
        wanted_receive = true;
        offer.receive = queue == Offer::Queue::refused ? Offer::Receive::none : Offer::Receive::available;
        offer.queue = queue;
      } else if (verdict.kind == Verdict::Kind::wants_access) {
        offer.access_granted = true;
      } else {
        return verdict;
      }
    }
  }
  static void expect_invalid(const Verdict& verdict) {
    EXPECT_EQ(verdict.kind, Verdict::Kind::reject);
    EXPECT_EQ(verdict.syndrome, Aeth::kInvalidRequest);
    EXPECT_TRUE(verdict.fatal);
    EXPECT_TRUE(verdict.request_event);
  }

  SendWindow window;
  Requester requester{window};
  Completer completer{window};
  Responder responder;
  Offer::Queue queue = Offer::Queue::known;
  bool wanted_queue = false;
  bool wanted_receive = false;

 private:
  std::uint64_t next_id_ = 0;
};

TEST_F(Xrc, OpcodesAreThoseOfRcWithAnotherCode) {
  for (int code = 0; code < 0x20; ++code) {
    const auto* rc = find_opcode(static_cast<std::uint8_t>(code));
    const auto* xrc = find_opcode(static_cast<std::uint8_t>(0xa0 | code));
    // Only RC has atomic writes.
    ASSERT_EQ(rc == nullptr || rc->opcode == Opcode::atomic_write, xrc == nullptr) << code;
    if (xrc == nullptr) continue;
    EXPECT_EQ(reliable_opcode(Transport::rc, rc->opcode), rc->opcode);
    EXPECT_EQ(reliable_opcode(Transport::xrc_send, rc->opcode), xrc->opcode);
    EXPECT_EQ(xrc->name, std::string("XRC_") + rc->name);
    EXPECT_EQ(xrc->operation, rc->operation);
    EXPECT_EQ(xrc->position, rc->position);
    EXPECT_EQ(xrc->payload, rc->payload);
    EXPECT_EQ(xrc->swaps(), rc->swaps());
    const std::uint8_t own = rc->response() ? 0 : header::kXrceth;
    EXPECT_EQ(xrc->headers, rc->headers | own) << "a request names its queue in each packet";
    EXPECT_EQ(xrc->transport, rc->response() ? Transport::xrc_send : Transport::xrc_recv);
    if (rc->operation != Operation::atomic) {
      const auto extra = rc->has(header::kImmediate)    ? Extra::immediate
                         : rc->has(header::kInvalidate) ? Extra::invalidate
                                                        : Extra::none;
      for (const auto end : {Transport::xrc_send, Transport::xrc_recv})
        EXPECT_EQ(opcode_of(end, rc->operation, rc->position, extra), xrc->opcode);
    }
  }
}

TEST_F(Xrc, TheQueueStandsBehindTheBth) {
  Headers headers;
  headers.bth.opcode = Opcode::xrc_write_only_imm;
  headers.xrc_srqn = 0xff'123456;
  headers.reth = Reth{0x1122334455667788, {0x99aabbcc}, 8};
  headers.immediate = 0xddeeff00;
  std::array<std::byte, Headers::kMaxBytes> bytes;
  EXPECT_EQ(encode(headers, bytes), Bth::kBytes + 4u + 16u + 4u);
  const std::array<int, 6> expected{0x00, 0x12, 0x34, 0x56, 0x11, 0x22};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[Bth::kBytes + i]), expected[i]) << i;
  bytes[Bth::kBytes] = std::byte{0xff};  // reserved
  EXPECT_EQ(decode(bytes)->xrc_srqn, 0x123456u);
  cut_to_fields(headers);
  EXPECT_EQ(headers.xrc_srqn, 0x123456u);
}

TEST_F(Xrc, EachPacketOfARequestNamesItsQueue) {
  const struct {
    SendOperation operation;
    std::uint32_t length;
    std::vector<Opcode> opcodes;
  } cases[] = {
      {SendOperation::send, 600, {Opcode::xrc_send_first, Opcode::xrc_send_middle, Opcode::xrc_send_last}},
      {SendOperation::write, 300, {Opcode::xrc_write_first, Opcode::xrc_write_last}},
      {SendOperation::write, 1, {Opcode::xrc_write_only}},
      {SendOperation::read, 300, {Opcode::xrc_read_request}},
      {SendOperation::compare_swap, 8, {Opcode::xrc_compare_swap}},
      {SendOperation::fetch_add, 8, {Opcode::xrc_fetch_add}},
  };
  std::uint32_t srqn = kSrqn;
  for (const auto& one : cases) {
    const auto sent = packets(one.operation, one.length, ++srqn);
    ASSERT_EQ(sent.size(), one.opcodes.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(sent[i].headers.bth.opcode, one.opcodes[i]);
      EXPECT_EQ(sent[i].headers.xrc_srqn, srqn);
      EXPECT_EQ(sent[i].headers.bth.destination.value, 7u);
      EXPECT_EQ(sent[i].headers.bth.ack_request, i + 1 == sent.size());
    }
  }
}

TEST_F(Xrc, WhatTakesAReceiveHearsOfTheQueueWithIt) {
  for (const auto& packet : packets(SendOperation::send, 600)) {
    const auto verdict = validate(packet);
    EXPECT_EQ(verdict.kind, Verdict::Kind::place);
    EXPECT_FALSE(wanted_queue);
    EXPECT_EQ(wanted_receive, packet.offset == 0);
  }
  EXPECT_TRUE(validate(packets(SendOperation::write, 8, kSrqn, 1).front()).completes_receive);
  EXPECT_TRUE(wanted_receive);
  EXPECT_FALSE(wanted_queue);
}

TEST_F(Xrc, WhatTakesNoneAsksForTheQueue) {
  EXPECT_EQ(validate(packets(SendOperation::write, 8).front()).kind, Verdict::Kind::place);
  EXPECT_TRUE(wanted_queue);
  EXPECT_EQ(validate(packets(SendOperation::write, 0).front()).kind, Verdict::Kind::place);
  EXPECT_TRUE(wanted_queue) << "with nothing to write, too";
  const auto read = validate(packets(SendOperation::read, 300).front());
  EXPECT_EQ(read.kind, Verdict::Kind::read);
  EXPECT_TRUE(wanted_queue);
  EXPECT_EQ(read.domain, kDomain);
  const auto atomic = validate(packets(SendOperation::fetch_add, 8).front());
  EXPECT_EQ(atomic.kind, Verdict::Kind::atomic);
  EXPECT_EQ(atomic.domain, kDomain);
  EXPECT_FALSE(wanted_receive);
}

TEST_F(Xrc, AQueueThatIsNoneOfTheDomain) {
  queue = Offer::Queue::refused;
  for (const auto operation :
       {SendOperation::send, SendOperation::write, SendOperation::read, SendOperation::fetch_add}) {
    const auto packet = packets(operation, 8).front();
    expect_from(packet.headers.bth.psn);
    expect_invalid(validate(packet));
  }
}

TEST_F(Xrc, AMessageGoesToOneQueue) {
  auto sent = packets(SendOperation::send, 600);
  EXPECT_EQ(validate(sent[0]).kind, Verdict::Kind::place);
  sent[1].headers.xrc_srqn = kSrqn + 1;
  expect_invalid(validate(sent[1]));
}

TEST_F(Xrc, AWriteWithImmediateToo) {
  auto sent = packets(SendOperation::write, 300, kSrqn, 1);
  EXPECT_EQ(validate(sent[0]).kind, Verdict::Kind::place);
  EXPECT_TRUE(wanted_queue);
  sent[1].headers.xrc_srqn = kSrqn + 1;
  expect_invalid(validate(sent[1]));
  EXPECT_FALSE(wanted_receive) << "of neither queue";
}

TEST_F(Xrc, RcPacketsAreNoneOfIts) {
  auto packet = packets(SendOperation::send, 8).front();
  packet.headers.bth.opcode = Opcode::send_only;
  expect_invalid(validate(packet));
}

TEST_F(Xrc, Duplicates) {
  const auto sent = packets(SendOperation::send, 8);
  const auto read = packets(SendOperation::read, 300);
  validate(sent.front());
  validate(read.front());
  const auto again = validate(sent.front());
  EXPECT_EQ(again.kind, Verdict::Kind::acknowledge);
  EXPECT_FALSE(wanted_queue);
  const auto reread = validate(read.front());
  EXPECT_EQ(reread.kind, Verdict::Kind::read);
  EXPECT_TRUE(reread.duplicate);
  EXPECT_TRUE(wanted_queue);
  EXPECT_EQ(reread.domain, kDomain);
  queue = Offer::Queue::refused;
  EXPECT_EQ(validate(read.front()).kind, Verdict::Kind::drop) << "the queue went meanwhile";
}

TEST_F(Xrc, AnswersComplete) {
  const auto sent = packets(SendOperation::send, 300);
  Headers ack;
  ack.bth.opcode = Opcode::xrc_acknowledge;
  ack.bth.psn = sent.back().headers.bth.psn;
  ack.aeth = Aeth{};
  EXPECT_EQ(completer.receive(ack, 0).kind, ResponseOutcome::Kind::progress);
  const auto done = completer.take_completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, Status::success);
}

}  // namespace
}  // namespace rnicsim::roce::xrc_test

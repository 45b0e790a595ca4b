// SPDX-License-Identifier: Apache-2.0
// The responders of UC and UD, one packet at a time.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responders/uc_responder.h"
#include "model/roce/responders/ud_responder.h"

namespace rnicsim::roce::unreliable_test {
namespace {

using Kind = Verdict::Kind;
constexpr std::uint32_t kMtu = 256;

template <class Responder>
Verdict validate(Responder& responder, const Headers& headers, std::uint32_t payload, std::uint64_t receive_bytes,
                 bool posted, bool granted = true) {
  Offer offer{.receive_bytes = receive_bytes};
  for (;;) {
    const auto verdict = responder.receive(headers, payload, offer);
    if (verdict.kind == Kind::wants_receive) {
      EXPECT_EQ(offer.receive, Offer::Receive::unknown);
      offer.receive = posted ? Offer::Receive::available : Offer::Receive::none;
    } else if (verdict.kind == Kind::wants_access) {
      EXPECT_FALSE(offer.access_granted);
      offer.access_granted = granted;
    } else {
      return verdict;
    }
  }
}

struct UcTest : ::testing::Test {
  UcTest() {
    window.start({.transport = Transport::uc, .local = {7}, .remote = {9}, .mtu = kMtu}, Psn(0xfffffe));
    responder.start({.mtu = kMtu, .access = remote_access::kWrite}, Psn(0xfffffe));
  }
  std::vector<RequestPacket> packets_of(SendOperation operation, std::uint32_t length) {
    window.post({.id = next_id++, .operation = operation, .length = length, .remote_address = 0x1000, .rkey = {5}});
    std::vector<RequestPacket> packets;
    while (auto packet = requester.next_packet()) packets.push_back(*packet);
    return packets;
  }
  Verdict take(const RequestPacket& packet, std::uint64_t receive_bytes = 1 << 20, bool posted = true) {
    return validate(responder, packet.headers, packet.payload, receive_bytes, posted);
  }

  SendWindow window;
  Requester requester{window};
  Completer completer{window};
  UcResponder responder;
  std::uint64_t next_id = 0;
};

TEST_F(UcTest, AMessageCompletesWhenItsLastPacketHasLeft) {
  const auto packets = packets_of(SendOperation::send, 3 * kMtu);
  ASSERT_EQ(packets.size(), 3u);
  completer.left(packets[1].end);
  EXPECT_FALSE(completer.take_completion());
  completer.left(packets[2].end);
  EXPECT_EQ(completer.take_completion().value().status, Status::success);
}

TEST_F(UcTest, NoPacketAsksForAnAcknowledgement) {
  for (const auto& packet : packets_of(SendOperation::write, 1000 * kMtu)) {
    EXPECT_FALSE(packet.headers.bth.ack_request);
    EXPECT_EQ(info(packet.headers.bth.opcode).transport, Transport::uc);
  }
}

TEST_F(UcTest, TheReceiveOfALostMessageIsTheNextOnes) {
  const auto lost = packets_of(SendOperation::send, 2 * kMtu);
  EXPECT_TRUE(take(lost[0]).begins_receive);
  const auto next = packets_of(SendOperation::send, 2 * kMtu);
  EXPECT_FALSE(take(next[0]).begins_receive);
  const auto verdict = take(next[1]);
  EXPECT_TRUE(verdict.completes_receive);
  EXPECT_EQ(verdict.message_bytes, 2 * kMtu);
  EXPECT_TRUE(take(packets_of(SendOperation::send, 1)[0]).begins_receive);
}

TEST_F(UcTest, NothingOfAMessageWithAGapIsPlacedBehindIt) {
  const auto packets = packets_of(SendOperation::write, 4 * kMtu);
  EXPECT_EQ(take(packets[0]).kind, Kind::place);
  EXPECT_EQ(take(packets[2]).kind, Kind::drop);
  EXPECT_EQ(take(packets[3]).kind, Kind::drop);
}

TEST_F(UcTest, AWriteIsNoLongerAndNoShorterThanItSays) {
  auto packets = packets_of(SendOperation::write, 2 * kMtu);
  packets[0].headers.reth->length = kMtu + 1;
  EXPECT_EQ(take(packets[0]).kind, Kind::place);
  EXPECT_EQ(take(packets[1]).kind, Kind::drop);
}

// Random loss, duplicates and late packets: messages complete in order, each with all its bytes.
TEST_F(UcTest, WhatCompletesIsWhole) {
  std::mt19937 random(7);
  std::vector<RequestPacket> sent;
  std::vector<std::uint32_t> lengths;
  for (int i = 0; i < 2000; ++i) {
    lengths.push_back(random() % (5 * kMtu));
    for (const auto& packet :
         packets_of(random() % 2 == 0 ? SendOperation::send : SendOperation::write, lengths.back()))
      sent.push_back(packet);
    completer.left(sent.back().end);
    ASSERT_TRUE(completer.take_completion());
  }
  std::uint64_t last = 0, completed = 0;
  std::uint32_t placed = 0;
  const auto deliver = [&](const RequestPacket& packet) {
    const auto verdict = take(packet);
    if (verdict.kind != Kind::place) return;
    if (verdict.offset == 0) placed = 0;
    ASSERT_EQ(verdict.offset, placed);
    placed += packet.payload;
    if (!verdict.completes) return;
    ++completed;
    ASSERT_EQ(placed, lengths[packet.message]);
    last = packet.message;
  };
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (random() % 20 == 0) continue;
    deliver(sent[i]);
    if (random() % 50 == 0 && i > 3) deliver(sent[i - random() % 3]);
  }
  EXPECT_GT(completed, 1000u);
  EXPECT_GT(last, 1900u);
}

struct UdTest : ::testing::Test {
  UdTest() {
    window.start({.transport = Transport::ud, .local = {7}, .mtu = kMtu}, Psn(3));
    responder.start({.mtu = kMtu, .qkey = 0x1234});
  }
  RequestPacket datagram(std::uint32_t length, std::uint32_t qkey = 0x1234,
                         std::optional<std::uint32_t> immediate = {}) {
    window.post({.id = next_id++,
                 .operation = SendOperation::send,
                 .length = length,
                 .immediate = immediate,
                 .remote = {0x42},
                 .qkey = qkey});
    return requester.next_packet().value();
  }

  SendWindow window;
  Requester requester{window};
  UdResponder responder;
  std::uint64_t next_id = 0;
};

TEST_F(UdTest, ADatagramNamesItsSenderAndItsReceiver) {
  const auto packet = datagram(100, 0x1234, 0x99);
  EXPECT_EQ(packet.headers.bth.opcode, Opcode::ud_send_only_imm);
  EXPECT_EQ(packet.headers.bth.destination, Qpn{0x42});
  EXPECT_EQ(packet.headers.deth.value(), (Deth{0x1234, {7}}));
  const auto verdict = validate(responder, packet.headers, packet.payload, kGrhBytes + 100, true);
  EXPECT_EQ(verdict.kind, Kind::place);
  EXPECT_EQ(verdict.message_bytes, kGrhBytes + 100);
  EXPECT_EQ(packet.headers.immediate, 0x99u);
}

TEST_F(UdTest, WhatDoesNotFitIsDropped) {
  const auto packet = datagram(100);
  const auto cause = [&](const RequestPacket& given, std::uint64_t bytes, bool posted) {
    const auto verdict = validate(responder, given.headers, given.payload, bytes, posted);
    EXPECT_EQ(verdict.kind, Kind::drop);
    return verdict.cause;
  };
  EXPECT_EQ(cause(packet, kGrhBytes + 99, true), DropCause::unfit);
  EXPECT_EQ(cause(packet, 1000, false), DropCause::no_receive);
  EXPECT_EQ(cause(datagram(100, 0x1235), 1000, true), DropCause::bad_qkey);
  auto long_packet = datagram(kMtu);
  long_packet.payload = kMtu + 1;
  EXPECT_EQ(cause(long_packet, 1000, true), DropCause::unfit);
}

}  // namespace
}  // namespace rnicsim::roce::unreliable_test

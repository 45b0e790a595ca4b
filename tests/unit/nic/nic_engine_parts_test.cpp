// SPDX-License-Identifier: Apache-2.0
// Parts of a QP engine that do not know the transport: tags, rings, lanes, turns.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/abi/queue.h"
#include "model/nic/engine/packet_lane.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/engine/receive_ring.h"
#include "model/nic/engine/send_ring.h"
#include "model/nic/engine/send_room.h"
#include "model/nic/engine/tickets.h"
#include "model/nic/engine/transmit_units.h"

namespace rnicsim::nic::test::engine_parts {
namespace {

constexpr Qpn kQp{7};
constexpr std::uint64_t kRing = 0x10000;
constexpr std::uint64_t kRecord = 0x20000;

QpContext context() {
  QpContext context;
  context.send_ring = context.receive_ring = kRing;
  context.doorbell_record = kRecord;
  context.log_send_blocks = context.log_receive_wqes = 3;
  context.log_receive_stride = 6;
  return context;
}

WqeBytes zeros(std::size_t bytes) { return {0, true, Payload::copy_of(std::vector<std::byte>(bytes))}; }

// NOPs of one block each.
WqeBytes sends(std::uint16_t first, std::size_t count) {
  std::vector<std::byte> bytes(count * abi::kSendBlock);
  for (std::size_t i = 0; i < count; ++i) {
    abi::ControlSegment control;
    control.wqe_index = static_cast<std::uint16_t>(first + i);
    control.segments = 1;
    control.qpn_flags = kQp.value << 8;
    std::memcpy(&bytes[i * abi::kSendBlock], &control, sizeof control);
  }
  return {0, true, Payload::copy_of(bytes)};
}

std::vector<int> taken(SendRing& ring) {
  std::vector<int> indices;
  while (ring.has_next()) {
    SendWqe wqe;
    roce::SendRequest request;
    ring.take_next(kQp, {}, wqe, request);
    indices.push_back(request.refused ? -1 : wqe.index);
  }
  return indices;
}

WqeBytes record(std::uint32_t producer) {
  abi::QpDoorbellRecord record;
  record.receive_producer = producer;
  return {0, true, Payload::copy_of(std::as_bytes(std::span(&record, 1)))};
}

std::vector<int> flushed(ReceiveRing& ring) {
  std::vector<int> indices;
  while (const auto index = ring.flush_next()) indices.push_back(*index);
  return indices;
}

TEST(Tickets, AnAnswerIsTakenOnceAndNotAfterAReset) {
  Tickets<char> tickets;
  const auto tag = tickets.issue(kQp, 1, 'a', 5);
  const auto ticket = tickets.redeem(tag);
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->purpose, 'a');
  EXPECT_EQ(ticket->argument, 5u);
  EXPECT_FALSE(tickets.redeem(tag));
  const auto before = tickets.issue(kQp, 1, 'b');
  tickets.forget_all();
  EXPECT_NE(tickets.issue(kQp, 2, 'c'), before);
  EXPECT_FALSE(tickets.redeem(before));
}

constexpr std::size_t kAmple = 32;  // WQEs that the engine accepts

TEST(SendRing, ReadsNoFurtherThanTheEndOfTheRing) {
  SendRing ring(rnic_personality());
  EXPECT_EQ(ring.announce({kQp, 6, {}}, context(), true), SendRing::Announced::producer);
  EXPECT_TRUE(ring.wants_read());
  EXPECT_EQ(ring.begin_read(context(), kAmple)->bytes, 6 * abi::kSendBlock);
  EXPECT_FALSE(ring.wants_read());
  EXPECT_TRUE(ring.end_read(sends(0, 6)));
  EXPECT_EQ(taken(ring), (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ring.announce({kQp, 10, {}}, context(), true), SendRing::Announced::producer);
  const auto read = ring.begin_read(context(), kAmple);
  EXPECT_EQ(read->address, kRing + 6 * abi::kSendBlock);
  EXPECT_EQ(read->bytes, 2 * abi::kSendBlock);
  EXPECT_TRUE(ring.end_read(sends(6, 2)));
  EXPECT_EQ(taken(ring), (std::vector{6, 7}));
  EXPECT_EQ(ring.begin_read(context(), kAmple)->address, kRing);
}

TEST(SendRing, TakesACarriedWqeOnlyWhenItIsTheNext) {
  SendRing ring(rnic_personality());
  EXPECT_EQ(ring.announce({kQp, 9, {}}, context(), true), SendRing::Announced::invalid);
  EXPECT_EQ(ring.announce({kQp, 1, sends(0, 1).bytes}, context(), true), SendRing::Announced::next_wqe);
  EXPECT_EQ(taken(ring), std::vector{0});
  EXPECT_EQ(ring.announce({kQp, 2, sends(1, 1).bytes}, context(), false), SendRing::Announced::producer);
  EXPECT_EQ(ring.announce({kQp, 3, sends(2, 1).bytes}, context(), true), SendRing::Announced::producer);
  EXPECT_EQ(ring.begin_read(context(), kAmple)->bytes, 2 * abi::kSendBlock);
}

TEST(SendRing, NonsenseStandsForAllThatWerePosted) {
  SendRing ring(rnic_personality());
  ring.announce({kQp, 3, {}}, context(), true);
  ring.begin_read(context(), kAmple);
  EXPECT_TRUE(ring.end_read(zeros(3 * abi::kSendBlock)));
  EXPECT_EQ(taken(ring), std::vector{-1});
  EXPECT_EQ(ring.parsed(), 3);
}

TEST(SendRing, OfARingThatIsGoneNothingComes) {
  SendRing ring(rnic_personality());
  ring.announce({kQp, 3, {}}, context(), true);
  ring.begin_read(context(), kAmple);
  EXPECT_FALSE(ring.end_read({0, false, {}}));
  EXPECT_TRUE(taken(ring).empty());
  EXPECT_FALSE(ring.wants_read());
}

// The ring waits until several WQEs have room, unless only one is left.
TEST(SendRing, ReadsWhatThereIsRoomForAndNoLittle) {
  SendRing ring(rnic_personality());
  ring.announce({kQp, 6, {}}, context(), true);
  for (const std::size_t room : {0, 1, 3}) EXPECT_FALSE(ring.begin_read(context(), room)) << room;
  EXPECT_EQ(ring.begin_read(context(), 5)->bytes, 5 * abi::kSendBlock);
  EXPECT_TRUE(ring.end_read(sends(0, 5)));
  EXPECT_EQ(ring.begin_read(context(), 1)->bytes, abi::kSendBlock);  // the last WQE
}

TEST(ReceiveRing, LooksAtTheRecordThenReadsWhatWasPosted) {
  ReceiveRing ring(rnic_personality(), 16);
  EXPECT_EQ(ring.begin_read(context())->address, kRecord);
  ring.want();
  EXPECT_TRUE(ring.take_look_again());
  EXPECT_EQ(ring.end_read(record(2), context()), ReceiveRing::Found::posted);
  EXPECT_EQ(ring.begin_read(context())->bytes, 128u);
  EXPECT_EQ(ring.end_read(zeros(128), context()), ReceiveRing::Found::receives);
  EXPECT_EQ(ring.held(), 2u);
  EXPECT_EQ(ring.begin_read(context())->address, kRecord);
  EXPECT_EQ(ring.end_read(record(99), context()), ReceiveRing::Found::nothing);
  ring.fill_next();
  EXPECT_EQ(ring.filling()->index, 0);
  EXPECT_EQ(ring.consumer(), 1);
}

// The record is not read for each receive if the ring is shorter than one read.
TEST(ReceiveRing, IsLowWithHalfOfWhatOneReadCanBring) {
  struct Case {
    std::uint8_t log_receives;
    std::uint32_t ahead;
    std::size_t low_below;
  };
  for (const auto [log_receives, ahead, low_below] : {Case{3, 16, 4}, Case{3, 4, 2}, Case{0, 16, 1}, Case{5, 1, 1}}) {
    ReceiveRing ring(rnic_personality(), ahead);
    auto of = context();
    of.log_receive_wqes = log_receives;
    for (std::size_t held = 0; held <= low_below; ++held, ring.hold({}))
      EXPECT_EQ(ring.low(of), held < low_below) << held << " of " << (1u << log_receives) << ", " << ahead << " ahead";
  }
}

TEST(ReceiveRing, FlushesInOrderWhatWasPostedBeforeTheError) {
  ReceiveRing ring(rnic_personality(), 16);
  ring.begin_read(context());
  ring.end_read(record(3), context());
  ring.begin_read(context());
  ring.end_read(zeros(192), context());
  ring.fill_next();
  ring.begin_read(context());
  ring.end_read(record(5), context());
  ring.begin_read(context());
  ring.begin_flush();
  EXPECT_FALSE(ring.flush_read(context()));
  EXPECT_TRUE(flushed(ring).empty());
  EXPECT_EQ(ring.end_read(zeros(128), context()), ReceiveRing::Found::nothing);
  EXPECT_EQ(ring.flush_read(context())->address, kRecord);
  ring.end_read(record(6), context());
  EXPECT_FALSE(ring.flush_read(context()));
  EXPECT_EQ(flushed(ring), (std::vector{0, 1, 2, 3, 4, 5}));
}

TEST(PacketLane, EmitsInOrderAndDropsFromTheEnd) {
  PacketLane lane;
  std::vector<std::uint64_t> emitted;
  const auto put = [&](PacketLane::Entry& entry) { emitted.push_back(entry.sequence); };
  for (int i = 0; i < 3; ++i) lane.add(Packet::make());
  lane.arrived(*lane.find(1), {});
  lane.emit_ready(put);
  EXPECT_TRUE(emitted.empty());
  lane.arrived(*lane.find(0), {});
  lane.emit_ready(put);
  EXPECT_EQ(emitted, (std::vector<std::uint64_t>{0, 1}));
  lane.find(2)->bytes = 7;
  std::vector<std::uint32_t> dropped;
  lane.drop_from(0, [&](const PacketLane::Entry& entry) { dropped.push_back(entry.bytes); });
  EXPECT_EQ(dropped, (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(lane.find(2), nullptr);
}

Payload filled(std::uint32_t bytes, int value) {
  Payload payload(bytes);
  std::ranges::fill(payload.writable(), std::byte(value));
  return payload;
}

TEST(PacketLane, AReadIsAskedForAndComesInPieces) {
  PacketLane lane;
  auto& entry = lane.add(Packet::make());
  PacketLane::expect(entry, {.pd = 1, .key = 2, .address = 1000, .bytes = 250});
  std::vector<std::uint32_t> offsets;
  for (std::uint64_t asked = 0; auto* unasked = lane.unasked();) {
    const auto [read, offset] = lane.ask(*unasked, 100);
    EXPECT_EQ(read.address, 1000 + asked);
    EXPECT_EQ(offset, asked);
    offsets.push_back(offset);
    asked += read.bytes;
  }
  EXPECT_EQ(offsets, (std::vector<std::uint32_t>{0, 100, 200}));
  EXPECT_EQ(lane.awaited(), 250u);
  EXPECT_EQ(lane.pieces(), 3u);
  lane.piece_arrived(entry, 200, filled(50, 3));
  lane.piece_arrived(entry, 0, filled(100, 1));
  EXPECT_FALSE(entry.ready);
  EXPECT_EQ(lane.awaited(), 100u);
  lane.piece_arrived(entry, 100, filled(100, 2));
  EXPECT_TRUE(entry.ready);
  EXPECT_EQ(lane.pieces(), 0u);
  const auto bytes = entry.packet->payload().bytes();
  ASSERT_EQ(bytes.size(), 250u);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte(i / 100 + 1)) << i;
}

TEST(PacketLane, WhatIsDroppedIsAwaitedNoMore) {
  PacketLane lane;
  for (int i = 0; i < 2; ++i) PacketLane::expect(lane.add(Packet::make()), {.bytes = 300});
  lane.ask(*lane.find(0), 300);
  lane.ask(*lane.find(1), 100);
  EXPECT_EQ(lane.awaited(), 400u);
  EXPECT_FALSE(lane.all_asked());
  lane.drop_from(1, [](const PacketLane::Entry&) {});
  EXPECT_EQ(lane.awaited(), 300u);
  EXPECT_EQ(lane.pieces(), 1u);
  EXPECT_TRUE(lane.all_asked());
  lane.drop_from(0, [](const PacketLane::Entry&) {});
  EXPECT_EQ(lane.awaited(), 0u);
  EXPECT_EQ(lane.pieces(), 0u);
}

// Less than half of all PSNs, whatever the device's capabilities are.
TEST(Limits, AMessageIsOfFewerPacketsThanHalfOfAllPsns) {
  auto qp = context();
  qp.transport = roce::Transport::rc;
  const auto longest = [&](std::uint8_t mtu, std::uint32_t most) {
    const QpLimits limits{.max_message = most};
    qp.path_mtu = mtu;
    EXPECT_EQ(responder_attributes(qp, limits).max_message, send_rules(qp, limits).max_message);
    return send_rules(qp, limits).max_message;
  };
  EXPECT_EQ(longest(1, 1u << 31), (1u << 31) - 256);
  EXPECT_EQ(longest(1, 1u << 30), 1u << 30);
  EXPECT_EQ(longest(2, 1u << 31), 1u << 31);
  EXPECT_EQ(longest(5, 1u << 31), 1u << 31);
}

// Serves queue pairs while there is room. Returns the served QPs, and the busy units that were asked (a, b, ...).
struct Dispatcher {
  explicit Dispatcher(std::uint32_t count) : units(count) {}

  std::string operator()(std::uint32_t room) {
    std::string said;
    while (room > 0 && (units.settle(), units.any(open))) {
      const auto unit = units.next();
      if (units.busy(unit)) {
        units.ask(unit);
        said += static_cast<char>('a' + unit);
        continue;
      }
      const auto turn = units.take(open);
      units.took(unit, turn.qpn);
      at[turn.qpn.value] = unit;
      said += std::to_string(turn.qpn.value);
      --room;
    }
    return said;
  }
  void wants(std::uint32_t qpn, bool answers = false, std::uint8_t credit_class = 0) {
    units.enqueue({.qpn = Qpn{qpn}, .answers = answers, .credit_class = credit_class}, at[qpn]);
  }

  TransmitUnits units;
  std::uint32_t open = 0x1ff;  // credit classes that have room
  std::map<std::uint32_t, std::uint32_t> at;
};

TEST(TransmitUnits, WhoeverWaitedLongestHasTheFirstThatIsFree) {
  Dispatcher dispatch(2);
  for (const auto qpn : {4u, 6u, 8u, 5u}) dispatch.wants(qpn);
  EXPECT_EQ(dispatch(8), "46ab");
  dispatch.units.free(1);
  EXPECT_EQ(dispatch(8), "8b");
  dispatch.units.free(0);
  EXPECT_EQ(dispatch(0), "");
  EXPECT_EQ(dispatch(8), "5");
}

TEST(TransmitUnits, AQueuePairIsAtOneAtATime) {
  Dispatcher dispatch(3);
  dispatch.wants(4);
  EXPECT_EQ(dispatch(8), "4");
  dispatch.wants(4);
  dispatch.wants(4, true);
  dispatch.wants(5);
  EXPECT_EQ(dispatch(8), "a5");
  dispatch.units.free(0);
  EXPECT_EQ(dispatch(1), "4");
}

// A port that takes one packet at a time gives each QP its turn, although none ever waits for a unit.
TEST(TransmitUnits, AFullPortLetsAllHaveTheirTurns) {
  Dispatcher dispatch(3);
  for (const auto qpn : {4u, 5u, 6u}) dispatch.wants(qpn);
  std::string served;
  for (int round = 0; round < 6; ++round) {
    const auto said = dispatch(1);
    served += said.back();
    dispatch.wants(static_cast<std::uint32_t>(said.back() - '0'));
    for (std::uint32_t unit = 0; unit < 3; ++unit) dispatch.units.free_next(unit);
  }
  EXPECT_EQ(served, "456456");
}

TEST(TransmitUnits, APriorityWithoutRoomHoldsNobodyElseBack) {
  Dispatcher dispatch(4);
  dispatch.wants(4, false, 3);
  dispatch.wants(5, false, 1);
  dispatch.wants(6, false, 3);
  dispatch.wants(7, false, 1);
  dispatch.open = 1 << 1;
  EXPECT_EQ(dispatch(8), "57");
  EXPECT_EQ(dispatch.units.used(), 1u << 1 | 1u << 3);
  // With room again, the QP that has waited longest goes first.
  dispatch.wants(8, false, 1);
  dispatch.open = 0x1ff;
  EXPECT_EQ(dispatch(2), "46");
}

TEST(SendRoom, OpensAPriorityForPacketsAndBytes) {
  SendRoom room(10'000);
  EXPECT_EQ(room.open(), 0u);
  room.grant(2, 1);
  room.grant(5, 2);
  EXPECT_EQ(room.open(), 1u << 2 | 1u << 5);
  room.take(2, 0);
  EXPECT_EQ(room.open(), 1u << 5);
  room.take(5, 10'000);
  EXPECT_EQ(room.open(), 0u);
  room.give_back_bytes(5, 1);
  room.grant(2, 1);
  EXPECT_EQ(room.open(), 1u << 2 | 1u << 5);
  // A NAK may leave without a credit; the next credit pays for it.
  room.take(2, 0);
  room.take(2, 0);
  room.grant(2, 1);
  EXPECT_EQ(room.open(), 1u << 5);
  room.reset();
  EXPECT_EQ(room.open(), 0u);
}

// Three QPs that always have work, on two units that are busy equally long.
TEST(TransmitUnits, QueuePairsHaveEqualShares) {
  Dispatcher dispatch(2);
  std::map<char, int> turns;
  for (const auto qpn : {4u, 5u, 6u}) dispatch.wants(qpn);
  for (int round = 0; round < 300; ++round) {
    for (const char who : dispatch(8))
      if (who >= '0' && who <= '9') {
        ++turns[who];
        dispatch.wants(static_cast<std::uint32_t>(who - '0'));
      }
    dispatch(8);
    dispatch.units.free(0);
    dispatch.units.free(1);
  }
  EXPECT_NEAR(turns['4'], 200, 1);
  EXPECT_NEAR(turns['5'], 200, 1);
  EXPECT_NEAR(turns['6'], 200, 1);
}

}  // namespace
}  // namespace rnicsim::nic::test::engine_parts

// SPDX-License-Identifier: Apache-2.0
// The requester, case by case: draining, fences, limits, losses, flushes.
#include <gmock/gmock.h>

#include <array>

#include "tests/rtl/requester_bench.h"

namespace rnicsim::rtl::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- Draining (SQD).
TEST(QpEngineDrain, FinishesWhatWasStartedAndTellsOnce) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  const auto first = bench.send(post(MessageKind::write, 40 * kMtu), post(MessageKind::write));
  EXPECT_THAT(psns(first), SizeIs(32)) << "no more before some have left";
  control.kind = Control::update;
  control.draining = true;
  EXPECT_THAT(only(bench.send(control), SendOp::drained), IsEmpty());
  EXPECT_THAT(psns(follow(bench, first)), SizeIs(40)) << "the message that had begun is sent whole";
  bench.take_sends();
  EXPECT_FALSE(bench.send(SendControl{.slot = kSlot, .kind = Control::query}).at(0).drained);
  const auto done = bench.send(ack(39));
  EXPECT_THAT(statuses(done), ElementsAre(0));
  EXPECT_THAT(only(done, SendOp::drained), SizeIs(1));
  EXPECT_TRUE(bench.send(SendControl{.slot = kSlot, .kind = Control::query}).at(0).drained);
  EXPECT_THAT(carry(bench, post(MessageKind::write), control), SizeIs(2)) << "told once, and nothing starts";
  control.draining = false;
  EXPECT_THAT(psns(carry(bench, control)), ElementsAre(40, 41));
  bench.send(ack(41));
  control.draining = true;
  EXPECT_THAT(only(bench.send(control), SendOp::drained), SizeIs(1)) << "once more, and at once";
}

TEST(QpEngineDrain, TellsOnceThoughItsRecordWaits) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  control.kind = Control::update;
  control.draining = true;
  bench.push(control);
  for (int i = 0; i < 60; ++i) {
    bench.takes_sends = i % 7 == 6;
    bench.cycle();
  }
  EXPECT_THAT(only(bench.take_sends(), SendOp::drained), SizeIs(1));
}

TEST(QpEngineDrain, WaitsForDataOnItsWayToMemory) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::read, kMtu));
  control.kind = Control::update;
  control.draining = true;
  bench.send(control);
  EXPECT_THAT(only(bench.send(answer(Opcode::read_response_only, 0, kMtu)), SendOp::drained), IsEmpty());
  EXPECT_THAT(only(bench.send(placed(0)), SendOp::drained), SizeIs(1));
}

// A lost packet is sent again while the queue drains.
TEST(QpEngineDrain, SendsAgain) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::write), post(MessageKind::write));
  control.kind = Control::update;
  control.draining = true;
  bench.send(control, post(MessageKind::write));
  EXPECT_THAT(psns(carry(bench, nak(0, roce::Aeth::kSequenceError))), ElementsAre(0, 1));
  EXPECT_THAT(only(bench.send(ack(1)), SendOp::drained), SizeIs(1));
}

// A message posted while the queue drains is neither checked nor completed before its turn.
TEST(QpEngineDrain, WhatIsPostedMeanwhileWaits) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  control.kind = Control::update;
  control.draining = true;
  auto malformed = post(MessageKind::write);
  malformed.refused = status(Status::local_length_error);
  EXPECT_THAT(statuses(bench.send(control, post(MessageKind::nop), malformed)), IsEmpty());
  EXPECT_TRUE(bench.send(SendControl{.slot = kSlot, .kind = Control::query}).at(0).drained);
  control.draining = false;
  EXPECT_THAT(statuses(bench.send(control)), ElementsAre(0, status(Status::local_length_error)));
}

TEST(QpEngineDrain, FinishesANopBetweenWhatWasStarted) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::write), post(MessageKind::nop), post(MessageKind::write), post(MessageKind::nop));
  control.kind = Control::update;
  control.draining = true;
  bench.send(control);
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0, 0));
  EXPECT_THAT(statuses(bench.send(ack(1))), ElementsAre(0));
  control.draining = false;
  EXPECT_THAT(statuses(bench.send(control)), ElementsAre(0));
}

// A READ without resource (max_rd_atomic lowered) does not wait for others. A READ that has not begun fails at its
// turn.
TEST(QpEngineDrain, MayLeaveAReadWithoutAResource) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  control.kind = Control::update;
  control.draining = true;
  bench.send(control, post(MessageKind::read));
  control.max_rd_atomic = 0;
  EXPECT_THAT(statuses(bench.send(control, post(MessageKind::compare_swap))), IsEmpty());
  control.draining = false;
  EXPECT_THAT(statuses(bench.send(control)), ElementsAre(status(Status::local_qp_operation_error), 5));
}

TEST(QpEngineDrain, MayLeaveALostReadWithoutAResource) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::read, 2 * kMtu), post(MessageKind::write));
  control.kind = Control::update;
  control.draining = true;
  control.max_rd_atomic = 0;
  bench.send(control);
  bench.send(answer(Opcode::read_response_first, 0, kMtu));
  EXPECT_THAT(statuses(bench.send(ack(2))), IsEmpty()) << "what came is on its way to memory";
  EXPECT_THAT(statuses(bench.send(placed(0))), ElementsAre(status(Status::local_qp_operation_error), 5));
}

TEST(QpEngineDrain, AReadOnItsWayNeedsNoFurtherResource) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::read));
  control.kind = Control::update;
  control.draining = true;
  control.max_rd_atomic = 0;
  bench.send(control);
  bench.send(answer(Opcode::read_response_only, 0, 8));
  EXPECT_THAT(statuses(bench.send(placed(0))), ElementsAre(0));
}

// --- Commands.
TEST(QpEngineCommands, UpdateCountsFromNowOn) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::write));
  control.kind = Control::update;
  control.remote_qpn = 0xabcdef;
  control.timeout = 6;
  control.retry_count = 3;
  control.rnr_retry = 2;
  control.max_rd_atomic = 1;
  bench.send(control);
  const auto left = bench.send(SendControl{.slot = kSlot, .kind = Control::query}).at(0);
  EXPECT_EQ(left.retries, 3) << "without any progress";
  EXPECT_EQ(left.rnr_retries, 2);
  const auto sent = carry(bench, post(MessageKind::write), post(MessageKind::read), post(MessageKind::read));
  EXPECT_THAT(psns(sent), ElementsAre(1, 2));
  EXPECT_EQ(only(sent, SendOp::packet)[0].destination, 0xabcdefu);
  bench.send(ack(0));
  const auto query = bench.send(SendControl{.slot = kSlot, .kind = Control::query}).at(0);
  EXPECT_EQ(query.retries, 3);
  EXPECT_EQ(query.rnr_retries, 2);
  EXPECT_EQ(query.psn, 1u);
  EXPECT_EQ(query.end_psn, 3u);
  bench.sleep_until(256);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(257);
  EXPECT_THAT(psns(bench.take_sends()), ElementsAre(1, 2));
}

TEST(QpEngineCommands, ErrorFlushesInOrderAndWhatIsPostedLater) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write), post(MessageKind::nop), post(MessageKind::read), post(MessageKind::send));
  const auto records = bench.send(SendControl{.slot = kSlot, .kind = Control::error}, post(MessageKind::write));
  EXPECT_THAT(statuses(records), ElementsAre(5, 5, 5, 5, 5));
  std::vector<int> messages;
  for (const auto& done : only(records, SendOp::complete)) messages.push_back(done.message);
  EXPECT_THAT(messages, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(bench.send(ack(0)).at(0).outcome, Outcome::dropped);
  EXPECT_THAT(bench.send(placed(2)), SizeIs(1)) << "late, and of no consequence";
}

TEST(QpEngineCommands, AnErrorOfOnesOwnEndsItBehindThoseBeforeIt) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  auto refused = post(MessageKind::write);
  refused.refused = static_cast<std::uint8_t>(Status::local_protection_error);
  const auto sent = carry(bench, post(MessageKind::write), post(MessageKind::write), refused, post(MessageKind::write));
  EXPECT_THAT(psns(sent), ElementsAre(0, 1)) << "nothing behind it is sent";
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0));
  EXPECT_THAT(statuses(bench.send(ack(1))), ElementsAre(0, 4, 5));
}

TEST(QpEngineCommands, DataThatCannotBeReadEndsIt) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  const auto sent = bench.send(post(MessageKind::write), post(MessageKind::write, 3 * kMtu), post(MessageKind::write));
  EXPECT_THAT(psns(sent), SizeIs(5));
  const SendEvent failed{.slot = kSlot, .kind = SendEvent::Kind::failed, .message = 1, .status = 4};
  const SendEvent left{.slot = kSlot, .kind = SendEvent::Kind::left, .count = 5};
  EXPECT_THAT(statuses(bench.send(failed, left)), IsEmpty()) << "the one before it is not answered";
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0, 4, 5));
}

// An operation that completes as flushed is not executed at the peer, whether or not its own packets have left.
TEST(QpEngineCommands, NothingIsSentBehindAMessageThatWillFail) {
  constexpr std::uint8_t kError = 4;
  for (const int how : {0, 1, 2}) {
    SCOPED_TRACE(how);
    Bench bench;
    bench.start(send_start(kSlot, 0));
    carry(bench, post(MessageKind::read, kMtu), post(MessageKind::write), post(MessageKind::read, 2 * kMtu));
    bench.send(answer(Opcode::read_response_only, 0, kMtu));  // landing: nothing completes yet
    const SendEvent failed{.slot = kSlot, .kind = SendEvent::Kind::failed, .message = 1, .status = kError};
    if (how == 0) bench.send(failed);
    if (how == 1) bench.send(nak(1, roce::Aeth::kRemoteAccessError));
    if (how == 2) bench.send(ack(1), answer(Opcode::read_response_first, 2, kMtu));
    if (how == 2) bench.send(placed(2, Status::local_protection_error));
    EXPECT_THAT(psns(carry(bench, post(MessageKind::write))), IsEmpty());
    if (how == 0) {
      EXPECT_THAT(psns(carry(bench, nak(1, roce::Aeth::kSequenceError))), IsEmpty());
    }
    const auto done = bench.send(placed(0));
    EXPECT_THAT(statuses(done), how == 0   ? ElementsAre(0, 4, 5, 5)
                                : how == 1 ? ElementsAre(0, 10, 5, 5)
                                           : ElementsAre(0, 0, 4, 5));
  }
}

TEST(QpEngineCommands, WhatIsBeforeAMessageThatWillFailGoesOn) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write), post(MessageKind::nop), post(MessageKind::write), post(MessageKind::write));
  for (const std::uint8_t message : {3, 2, 3})
    bench.send(SendEvent{.slot = kSlot, .kind = SendEvent::Kind::failed, .message = message, .status = 4});
  EXPECT_THAT(psns(carry(bench, nak(0, roce::Aeth::kSequenceError))), ElementsAre(0));
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0, 0, 4, 5));
}

// The answer arrived when the message was about to be sent again.
TEST(QpEngineCommands, NewsOfAMessageThatIsDoneWithIsTooLate) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write));
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0));
  bench.send(SendEvent{.slot = kSlot, .kind = SendEvent::Kind::failed, .message = 0, .status = 4});
  EXPECT_THAT(psns(carry(bench, post(MessageKind::write))), ElementsAre(1));
  EXPECT_THAT(statuses(bench.send(ack(1))), ElementsAre(0));
}

TEST(QpEngineCommands, ResetInTheMiddleOfAllForgetsIt) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write), post(MessageKind::read));
  bench.push(post(MessageKind::write), ack(0));
  bench.cycles(3);
  bench.engine.reset();
  bench.reference_model.reset();
  bench.queues.clear();
  bench.sends.clear();
  EXPECT_TRUE(bench.sleeps());
  EXPECT_FALSE(bench.engine.wake());
  bench.start(send_start(kSlot, 900));
  EXPECT_THAT(psns(carry(bench, post(MessageKind::write))), ElementsAre(900));
  EXPECT_THAT(statuses(bench.send(ack(900))), ElementsAre(0));
}

// --- Limits of sending.
TEST(QpEngineSends, AFenceWaitsForDataInMemory) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  auto fenced = post(MessageKind::write);
  fenced.fence = true;
  const auto sent = carry(bench, post(MessageKind::read, kMtu), post(MessageKind::fetch_add), fenced);
  EXPECT_THAT(psns(sent), ElementsAre(0, 1));
  EXPECT_THAT(psns(carry(bench, answer(Opcode::read_response_only, 0, kMtu))), IsEmpty());
  EXPECT_THAT(psns(carry(bench, placed(0))), IsEmpty());
  EXPECT_THAT(psns(carry(bench, answer(Opcode::atomic_acknowledge, 1))), IsEmpty());
  EXPECT_THAT(psns(carry(bench, placed(1))), ElementsAre(2));
}

TEST(QpEngineSends, AsManyReadsAndAtomicsAsWereAgreedOn) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.max_rd_atomic = 2;
  bench.start(control);
  const auto sent = carry(bench, post(MessageKind::read), post(MessageKind::compare_swap), post(MessageKind::read),
                          post(MessageKind::write));
  EXPECT_THAT(psns(sent), ElementsAre(0, 1)) << "and nothing overtakes them";
  EXPECT_THAT(psns(carry(bench, answer(Opcode::read_response_only, 0, 8))), ElementsAre(2, 3));
}

TEST(QpEngineSends, NoneWithoutAnyAgreedOn) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.max_rd_atomic = 0;
  bench.start(control);
  const auto records = carry(bench, post(MessageKind::write), post(MessageKind::read), post(MessageKind::write));
  EXPECT_THAT(psns(records), ElementsAre(0));
  EXPECT_THAT(statuses(bench.send(ack(0))), ElementsAre(0, status(Status::local_qp_operation_error), 5));
}

// Each of 256 queue pairs sends once before any sends twice.
TEST(QpEngineSends, QueuePairsTakeTurns) {
  Bench bench;
  for (unsigned slot = 0; slot < kSlots; ++slot) bench.start(send_start(static_cast<std::uint8_t>(slot), slot));
  for (unsigned i = 0; i < kSlots; ++i) {
    auto one = post(MessageKind::write, 20 * kMtu);
    one.slot = static_cast<std::uint8_t>(i * 91);
    bench.push(one);
  }
  bench.settle();
  const auto sent = only(bench.take_sends(), SendOp::packet);
  ASSERT_THAT(sent, SizeIs(20 * kSlots));
  for (unsigned round = 0; round < 20; ++round) {
    std::array<int, kSlots> times{};
    for (unsigned i = 0; i < kSlots; ++i) {
      const auto& packet = sent[round * kSlots + i];
      ++times[packet.slot];
      EXPECT_EQ(packet.psn, packet.slot + round);
    }
    ASSERT_THAT(times, Each(1)) << "round " << round;
  }
}

TEST(QpEngineSends, AcrossTheLastPsn) {
  Bench bench;
  bench.start(send_start(kSlot, 0xfffffe));
  EXPECT_THAT(psns(carry(bench, post(MessageKind::write, 5 * kMtu), post(MessageKind::read, 2 * kMtu))),
              ElementsAre(0xfffffe, 0xffffff, 0, 1, 2, 3));
  EXPECT_EQ(bench.send(ack(0)).at(0).outcome, Outcome::progress);
  EXPECT_EQ(bench.send(ack(0xffffff)).at(0).outcome, Outcome::duplicate);
  EXPECT_THAT(statuses(bench.send(ack(2))), ElementsAre(0));
  EXPECT_EQ(bench.send(ack(5)).at(0).outcome, Outcome::dropped);
}

TEST(QpEngineSends, AWindowOf32Messages) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < kMessages; ++i) bench.push(post(MessageKind::write));
    bench.settle();
    EXPECT_THAT(psns(follow(bench, bench.take_sends())), SizeIs(kMessages));
    EXPECT_THAT(statuses(bench.send(ack(round * kMessages + 11))), SizeIs(12));
    EXPECT_THAT(statuses(bench.send(ack(round * kMessages + 31))), SizeIs(20));
  }
}

TEST(QpEngineSends, TheFirstPacketsOfAMessageOf2GiB) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  auto records = bench.send(post(MessageKind::write, kMaxMessage));
  EXPECT_EQ(records.at(0).op, SendOp::post);
  EXPECT_EQ(records.at(0).end_psn, 1u << 23);
  for (std::uint32_t psn = 0; psn < 600;) {
    for (const auto& packet : only(records, SendOp::packet)) {
      ASSERT_EQ(packet.psn, psn);
      EXPECT_EQ(packet.opcode, code(psn == 0 ? Opcode::write_first : Opcode::write_middle));
      EXPECT_EQ(packet.length, kMaxMessage);
      EXPECT_EQ(packet.offset, psn * kMtu);
      EXPECT_EQ(packet.bytes, kMtu);
      EXPECT_EQ(packet.ack_request, psn % 256 == 255) << psn;
      ++psn;
    }
    leave(bench, records);
    bench.settle();
    records = bench.take_sends();
    ASSERT_FALSE(records.empty());
  }
  // As many PSNs as may be in flight, and a message behind them.
  auto read = post(MessageKind::read, 1 << 30);
  EXPECT_EQ(bench.send(read).at(0).end_psn, (1u << 23) + (1u << 22));
  EXPECT_EQ(bench.send(ack(300)).at(0).outcome, Outcome::progress);
}

// An acknowledgement makes room for the next message.
TEST(QpEngineSends, OnlyHalfOfAllPsnsAreInFlight) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  // 2^22 packets each: the third message would reach 2^23 PSNs ahead.
  const auto read = post(MessageKind::read, 1 << 30);
  const auto almost = post(MessageKind::read, (1 << 30) - kMtu);
  EXPECT_THAT(psns(carry(bench, read, almost, post(MessageKind::write))), ElementsAre(0, 1u << 22));
  EXPECT_THAT(psns(carry(bench, answer(Opcode::read_response_first, 0, kMtu))), ElementsAre((1u << 23) - 1));
}

// --- Answers.
TEST(QpEngineAnswers, GhostsAreDropped) {
  Bench bench;
  bench.start(send_start(kSlot, 10));
  carry(bench, post(MessageKind::write), post(MessageKind::read));
  for (const std::uint32_t psn : {12u, 13u, 0x80000bu, 0x800009u}) {
    for (const auto opcode : {Opcode::acknowledge, Opcode::read_response_only, Opcode::atomic_acknowledge}) {
      EXPECT_EQ(bench.send(answer(opcode, psn, 8)).at(0).outcome, Outcome::dropped) << psn;
    }
  }
  EXPECT_EQ(bench.send(ack(9)).at(0).outcome, Outcome::duplicate);
  EXPECT_EQ(bench.send(nak(9, roce::Aeth::kInvalidRequest)).at(0).outcome, Outcome::duplicate);
  EXPECT_THAT(statuses(bench.send(answer(Opcode::read_response_only, 11, 8))), ElementsAre(0));
  EXPECT_THAT(statuses(bench.send(placed(1))), ElementsAre(0));
}

TEST(QpEngineAnswers, AReadGoesOnWhereItsResponseWasLost) {
  Bench bench;
  bench.start(send_start(kSlot, 10));
  EXPECT_THAT(psns(carry(bench, post(MessageKind::read, 4 * kMtu), post(MessageKind::write))), ElementsAre(10, 14));
  const auto first = bench.send(answer(Opcode::read_response_first, 10, kMtu)).at(0);
  EXPECT_TRUE(first.place);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(bench.send(answer(Opcode::read_response_middle, 11, kMtu)).at(0).offset, kMtu);
  const auto lost = carry(bench, answer(Opcode::read_response_last, 13, kMtu));
  EXPECT_EQ(lost.at(0).outcome, Outcome::implied_sequence_error);
  ASSERT_THAT(psns(lost), ElementsAre(12, 14));
  const auto again = only(lost, SendOp::packet)[0];
  EXPECT_EQ(again.address, 0x10000u + 2 * kMtu);
  EXPECT_EQ(again.length, 2 * kMtu);
  // Packets that were in flight behind the gap change nothing.
  EXPECT_EQ(bench.send(ack(14)).at(0).outcome, Outcome::dropped);
  EXPECT_EQ(bench.send(answer(Opcode::read_response_first, 12, kMtu)).at(0).offset, 2 * kMtu);
  EXPECT_THAT(statuses(bench.send(answer(Opcode::read_response_last, 13, kMtu), ack(14))), IsEmpty());
  EXPECT_THAT(statuses(bench.send(placed(0), placed(0), placed(0))), IsEmpty());
  EXPECT_THAT(statuses(bench.send(placed(0))), ElementsAre(0, 0));
}

TEST(QpEngineAnswers, AResponseAnswersForWhatPrecedesIt) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write, 3 * kMtu), post(MessageKind::nop), post(MessageKind::send),
        post(MessageKind::fetch_add));
  EXPECT_THAT(statuses(bench.send(answer(Opcode::atomic_acknowledge, 4))), ElementsAre(0, 0, 0));
  EXPECT_THAT(statuses(bench.send(placed(3))), ElementsAre(0));
}

TEST(QpEngineAnswers, AnAckBeyondAReadSaysThatItsResponseIsLost) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write), post(MessageKind::read), post(MessageKind::write));
  const auto records = carry(bench, ack(2));
  EXPECT_EQ(records.at(0).outcome, Outcome::implied_sequence_error);
  EXPECT_THAT(statuses(records), ElementsAre(0));
  EXPECT_THAT(psns(records), ElementsAre(1, 2));
}

TEST(QpEngineAnswers, ThoseThatDoNotFitAreBad) {
  struct Bad {
    const char* why;
    Response response;
  };
  const Bad bad[] = {
      {"of a request", answer(Opcode::send_only, 1)},
      {"of no opcode", {.slot = kSlot, .opcode = 0xff, .psn = 1, .syndrome = kAck}},
      {"an ACK with data", answer(Opcode::acknowledge, 1, 4)},
      {"another kind", answer(Opcode::atomic_acknowledge, 1)},
      {"too short", answer(Opcode::read_response_first, 1, kMtu - 1)},
      {"not the first", answer(Opcode::read_response_middle, 1, kMtu)},
      {"the last too early", answer(Opcode::read_response_last, 1, kMtu)},
      {"the only one too early", answer(Opcode::read_response_only, 1, kMtu)},
      {"too long", answer(Opcode::read_response_only, 1, kMtu + 1)},
      {"of a WRITE", answer(Opcode::read_response_only, 0, 8)},
      {"a NAK", answer(Opcode::read_response_first, 1, kMtu, roce::Aeth::kInvalidRequest)},
  };
  for (const auto& [why, response] : bad) {
    Bench bench;
    bench.start(send_start(kSlot, 0));
    carry(bench, post(MessageKind::write), post(MessageKind::read, 3 * kMtu));
    const auto records = bench.send(response);
    EXPECT_EQ(records.at(0).outcome, Outcome::failed) << why;
    EXPECT_THAT(statuses(records), ::testing::Contains(status(Status::bad_response_error))) << why;
  }
}

TEST(QpEngineAnswers, PayloadThatCannotBeWrittenFailsItsMessage) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::read, 2 * kMtu), post(MessageKind::write));
  bench.send(answer(Opcode::read_response_first, 0, kMtu), answer(Opcode::read_response_last, 1, kMtu), ack(2));
  EXPECT_THAT(statuses(bench.send(placed(0, Status::local_protection_error))), IsEmpty());
  EXPECT_THAT(statuses(bench.send(placed(0, Status::local_access_error))), ElementsAre(4, 5)) << "the first counts";
}

// --- Found by the assertions: a NOP behind a message that is acknowledged late, after a rewind.
TEST(QpEngineAnswers, LateOnesTakeTheCursorAcrossANop) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::read, kMtu), post(MessageKind::write), post(MessageKind::nop),
        post(MessageKind::write));
  bench.send(answer(Opcode::read_response_only, 0, kMtu));  // landing: nothing completes yet
  bench.now = 200;
  while (bench.sends.empty()) bench.cycle();
  bench.push(ack(2));  // before any packet is sent again
  bench.settle();
  const auto records = bench.take_sends();
  EXPECT_TRUE(records.at(0).rewound);
  EXPECT_EQ(records.at(1).outcome, Outcome::progress);
  EXPECT_THAT(psns(records), IsEmpty()) << "all was answered for";
  EXPECT_THAT(statuses(bench.send(placed(0))), ElementsAre(0, 0, 0, 0));
}

TEST(QpEngineAnswers, TheCursorStaysBeforeARefusedMessage) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  auto refused = post(MessageKind::write);
  refused.refused = 4;
  carry(bench, post(MessageKind::read, kMtu), post(MessageKind::write), refused, post(MessageKind::write));
  bench.send(answer(Opcode::read_response_only, 0, kMtu));
  EXPECT_THAT(carry(bench, ack(1)), SizeIs(1));
  EXPECT_THAT(statuses(bench.send(placed(0))), ElementsAre(0, 0, 4, 5));
}

}  // namespace
}  // namespace rnicsim::rtl::test

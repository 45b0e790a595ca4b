// SPDX-License-Identifier: Apache-2.0
// The requester, case by case: timers and retries.
#include <gmock/gmock.h>

#include "model/roce/timers.h"
#include "tests/rtl/requester_bench.h"

namespace rnicsim::rtl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::uint64_t ticks(Duration duration) { return static_cast<std::uint64_t>((duration.ps + kTickPs - 1) / kTickPs); }

// --- Timers: time passes while the clock stands still.
TEST(QpEngineTimers, RnrTimerIsNeverEarlyAndATickLateAtMost) {
  for (std::uint8_t timer = 0; timer < 32; ++timer) {
    for (const std::uint64_t start : {0, 63, 1000}) {
      SCOPED_TRACE(std::to_string(timer) + " from " + std::to_string(start));
      Bench bench;
      bench.now = start;
      bench.start(send_start(kSlot, 100));
      carry(bench, post(MessageKind::send));
      const auto refused = bench.send(nak(100, roce::Aeth::kRnrNak | timer));
      ASSERT_THAT(refused, SizeIs(1));
      EXPECT_EQ(refused[0].outcome, Outcome::rnr);
      EXPECT_TRUE(refused[0].rewound);
      const auto due = start + ticks(roce::rnr_delay(timer));
      const auto before = bench.engine.cycles();
      bench.sleep_until(due);
      ASSERT_THAT(bench.take_sends(), IsEmpty());
      EXPECT_LT(bench.engine.cycles() - before, 16 * (due / 64 + 2));
      bench.sleep_until(due + 1);
      const auto late = bench.take_sends();
      ASSERT_THAT(late, SizeIs(2));
      EXPECT_EQ(late[0].op, SendOp::rnr_timeout);
      EXPECT_THAT(psns(late), ElementsAre(100));
    }
  }
}

TEST(QpEngineTimers, AckTimerIsNeverEarlyAndATickLateAtMost) {
  for (std::uint8_t timeout = 1; timeout < 32; ++timeout) {
    for (const std::uint64_t start : {0, 63, 1000}) {
      SCOPED_TRACE(std::to_string(timeout) + " from " + std::to_string(start));
      Bench bench;
      bench.now = start;
      auto control = send_start(kSlot, 100);
      control.timeout = timeout;
      bench.start(control);
      carry(bench, post(MessageKind::write));
      const auto due = start + ticks(roce::ack_timeout(timeout));
      // The longest timeouts would wake the clock too often for a test.
      if (timeout < 16) bench.sleep_until(due);
      bench.jump(due);
      ASSERT_THAT(bench.take_sends(), IsEmpty());
      bench.sleep_until(due + 1);
      const auto late = bench.take_sends();
      ASSERT_THAT(late, SizeIs(2));
      EXPECT_EQ(late[0].op, SendOp::ack_timeout);
      EXPECT_TRUE(late[0].rewound);
      EXPECT_THAT(psns(late), ElementsAre(100));
    }
  }
}

TEST(QpEngineTimers, AckTimerRunsFromWhenAPacketLeft) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  const auto sent = bench.send(post(MessageKind::write));
  EXPECT_FALSE(bench.engine.wake()) << "nothing has left the port";
  bench.sleep_until(5000);
  leave(bench, sent);
  bench.settle();
  bench.take_sends();
  bench.sleep_until(5064);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(5065);
  EXPECT_THAT(only(bench.take_sends(), SendOp::ack_timeout), SizeIs(1));
}

TEST(QpEngineTimers, AckTimerRunsFromWhenAPacketLeftAgain) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write));
  bench.sleep_until(50);
  const auto again = bench.send(nak(0, roce::Aeth::kSequenceError));
  EXPECT_THAT(psns(again), ElementsAre(0));
  bench.send(SendControl{.slot = kSlot, .kind = Control::query});
  bench.sleep_until(1000);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  follow(bench, again);
  bench.sleep_until(1064);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(1065);
  EXPECT_THAT(only(bench.take_sends(), SendOp::ack_timeout), SizeIs(1));
}

// The oldest unacknowledged message is behind a NOP. The NOP completes after its predecessors.
TEST(QpEngineTimers, AckTimerFiresBehindANop) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::read), post(MessageKind::nop), post(MessageKind::write));
  bench.send(answer(Opcode::read_response_only, 0, 8));
  bench.sleep_until(65);
  EXPECT_THAT(psns(follow(bench, bench.take_sends())), ElementsAre(1));
  bench.send(placed(0));
  EXPECT_THAT(statuses(bench.send(ack(1))), ElementsAre(0));
}

TEST(QpEngineTimers, AckTimerBeginsAnewWithEachProgress) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write), post(MessageKind::write), post(MessageKind::write));
  bench.sleep_until(60);
  bench.send(ack(0));
  bench.sleep_until(100);
  bench.send(ack(0));  // a duplicate is no progress
  bench.sleep_until(124);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(125);
  EXPECT_THAT(psns(bench.take_sends()), ElementsAre(1, 2));
}

TEST(QpEngineTimers, AckTimerEndsWithTheLastAnswerAndWithTheQueuePair) {
  for (const bool answered : {true, false}) {
    Bench bench;
    bench.start(send_start(kSlot, 0));
    carry(bench, post(MessageKind::write));
    if (answered) bench.send(ack(0));
    if (!answered) bench.send(SendControl{.slot = kSlot, .kind = Control::error});
    bench.sleep_until(10'000);
    EXPECT_THAT(bench.take_sends(), IsEmpty());
  }
}

TEST(QpEngineTimers, RnrTimerEndsWithTheQueuePair) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::send));
  bench.send(nak(0, roce::Aeth::kRnrNak | 1));
  bench.send(SendControl{.slot = kSlot, .kind = Control::error});
  bench.sleep_until(1000);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
}

TEST(QpEngineTimers, TimeoutZeroNeverFires) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.timeout = 0;
  bench.start(control);
  carry(bench, post(MessageKind::write));
  EXPECT_FALSE(bench.engine.wake());
  bench.jump(std::uint64_t{1} << 34);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
}

TEST(QpEngineTimers, ANewTimeoutBeginsAtOnce) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  bench.start(control);
  carry(bench, post(MessageKind::write));
  control.kind = Control::update;
  control.timeout = 8;
  bench.send(control);
  bench.sleep_until(1000);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  control.timeout = 2;
  bench.send(control);
  bench.sleep_until(1016);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(1017);
  EXPECT_THAT(psns(follow(bench, bench.take_sends())), ElementsAre(0));
  control.timeout = 0;
  bench.send(control);
  bench.jump(std::uint64_t{1} << 34);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
}

// The timer of a QP that was reset does not fire for the slot's next QP.
TEST(QpEngineTimers, NoneOutlivesItsQueuePair) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::write));
  bench.send(nak(0, roce::Aeth::kRnrNak | 1));
  bench.start(send_start(kSlot, 500));
  bench.sleep_until(40);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  EXPECT_THAT(psns(carry(bench, post(MessageKind::write))), ElementsAre(500));
  bench.sleep_until(100);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
  bench.sleep_until(105);
  EXPECT_THAT(only(bench.take_sends(), SendOp::ack_timeout), SizeIs(1));
}

// A waiting expiry is withdrawn by an earlier answer.
TEST(QpEngineTimers, AnAnswerInTimeForAnExpiredTimerStopsIt) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  bench.start(send_start(8, 0));
  carry(bench, post(MessageKind::write));
  auto other = post(MessageKind::write);
  other.slot = 8;
  bench.takes_sends = false;
  bench.push(other);  // the requester stalls with the other QP's record
  bench.cycles(10);
  bench.now = 65;
  bench.cycles(20);
  bench.push(ack(0));
  bench.cycles(3);
  bench.takes_sends = true;
  bench.settle();
  const auto records = bench.take_sends();
  EXPECT_THAT(only(records, SendOp::ack_timeout), IsEmpty());
  EXPECT_THAT(statuses(records), ElementsAre(0));
}

// --- Retries.
TEST(QpEngineRetries, TimeoutsExhaustThem) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.retry_count = 2;
  bench.start(control);
  carry(bench, post(MessageKind::write), post(MessageKind::write));
  for (int i = 0; i < 2; ++i) {
    bench.sleep_until(bench.now + 65);
    const auto late = follow(bench, bench.take_sends());
    EXPECT_EQ(late.at(0).outcome, Outcome::progress);
    EXPECT_THAT(psns(late), ElementsAre(0, 1)) << i;
  }
  bench.sleep_until(bench.now + 65);
  const auto last = bench.take_sends();
  EXPECT_EQ(last.at(0).outcome, Outcome::failed);
  EXPECT_FALSE(last.at(0).rewound);
  EXPECT_THAT(statuses(last), ElementsAre(status(Status::transport_retry_exceeded), status(Status::flushed_error)));
  bench.sleep_until(bench.now + 1000);
  EXPECT_THAT(bench.take_sends(), IsEmpty());
}

TEST(QpEngineRetries, SequenceErrorsExhaustThemAndProgressReplenishes) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.retry_count = 1;
  bench.start(control);
  carry(bench, post(MessageKind::write), post(MessageKind::write));
  EXPECT_THAT(psns(carry(bench, nak(0, roce::Aeth::kSequenceError))), ElementsAre(0, 1));
  EXPECT_THAT(psns(carry(bench, nak(1, roce::Aeth::kSequenceError))), ElementsAre(1)) << "0 was answered for";
  const auto last = bench.send(nak(1, roce::Aeth::kSequenceError));
  EXPECT_THAT(statuses(last), ElementsAre(status(Status::transport_retry_exceeded)));
}

TEST(QpEngineRetries, LostResponsesExhaustThem) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.retry_count = 0;
  bench.start(control);
  carry(bench, post(MessageKind::read), post(MessageKind::write));
  EXPECT_THAT(statuses(bench.send(ack(1))), ElementsAre(status(Status::transport_retry_exceeded), 5));
}

TEST(QpEngineRetries, RnrExhaustsThem) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.rnr_retry = 1;
  bench.start(control);
  carry(bench, post(MessageKind::send));
  EXPECT_EQ(bench.send(nak(0, roce::Aeth::kRnrNak | 1)).at(0).outcome, Outcome::rnr);
  EXPECT_EQ(bench.send(nak(0, roce::Aeth::kRnrNak | 1)).at(0).outcome, Outcome::duplicate) << "while it waits";
  bench.sleep_until(20);
  EXPECT_THAT(psns(follow(bench, bench.take_sends())), ElementsAre(0));
  const auto last = bench.send(nak(0, roce::Aeth::kRnrNak | 1));
  EXPECT_EQ(last.at(0).outcome, Outcome::failed);
  EXPECT_THAT(statuses(last), ElementsAre(status(Status::rnr_retry_exceeded)));
}

TEST(QpEngineRetries, RnrRetrySevenIsForEver) {
  Bench bench;
  bench.start(send_start(kSlot, 0));
  carry(bench, post(MessageKind::send));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(bench.send(nak(0, roce::Aeth::kRnrNak | 1)).at(0).outcome, Outcome::rnr);
    bench.sleep_until(bench.now + 20);
    ASSERT_THAT(psns(follow(bench, bench.take_sends())), ElementsAre(0));
  }
}

TEST(QpEngineRetries, SequenceNaksBehindAnRnrNakCostNone) {
  Bench bench;
  auto control = send_start(kSlot, 0);
  control.retry_count = 1;
  bench.start(control);
  carry(bench, post(MessageKind::send), post(MessageKind::send));
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(bench.send(nak(0, roce::Aeth::kRnrNak | 1)).at(0).outcome, Outcome::rnr);
    ASSERT_EQ(bench.send(nak(0, roce::Aeth::kSequenceError)).at(0).outcome, Outcome::duplicate);
    bench.sleep_until(bench.now + 20);
    ASSERT_THAT(psns(follow(bench, bench.take_sends())), ElementsAre(0, 1));
  }
}

TEST(QpEngineRetries, NaksGiveTheirStatus) {
  constexpr std::array<std::pair<std::uint8_t, Status>, 5> kNaks{{
      {roce::Aeth::kInvalidRequest, Status::remote_invalid_request_error},
      {roce::Aeth::kRemoteAccessError, Status::remote_access_error},
      {roce::Aeth::kRemoteOperationError, Status::remote_operation_error},
      {0x64, Status::bad_response_error},
      {0x40, Status::bad_response_error},  // a reserved class
  }};
  for (const auto& [syndrome, expected] : kNaks) {
    Bench bench;
    bench.start(send_start(kSlot, 0));
    carry(bench, post(MessageKind::write), post(MessageKind::write), post(MessageKind::write));
    // Messages before the NAK were executed.
    const auto records = bench.send(nak(1, syndrome));
    EXPECT_THAT(statuses(records), ElementsAre(0, status(expected), 5)) << int{syndrome};
  }
}

}  // namespace
}  // namespace rnicsim::rtl::test

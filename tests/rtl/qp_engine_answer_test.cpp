// SPDX-License-Identifier: Apache-2.0
// The responder, case by case: acknowledgements, repeated answers, refusals, and their order.
#include <gmock/gmock.h>

#include "tests/rtl/engine_bench.h"

namespace rnicsim::rtl::test::qp_engine_answer {
namespace {

using roce::Aeth;
using roce::Opcode;
using roce::Status;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint8_t kSlot = 9;
constexpr std::uint32_t kMtu = 256;

// A request with all facts about receives and access known.
Request request(Opcode opcode, std::uint32_t psn, std::uint16_t bytes = 0, std::uint32_t length = 0) {
  return {.slot = kSlot,
          .opcode = code(opcode),
          .psn = psn,
          .ack_request = true,
          .bytes = bytes,
          .address = 0x20000,
          .rkey = 6,
          .length = length == 0 ? bytes : length,
          .receive_known = true,
          .receive_available = true,
          .receive_bytes = kMaxMessage,
          .access_known = true,
          .access_granted = true};
}
AnswerEvent left(std::uint8_t count) { return {.slot = kSlot, .kind = AnswerEvent::Kind::left, .count = count}; }
AnswerEvent placed(const AnswerRecord& request, Result result = Result::ok) {
  return {.slot = kSlot, .kind = AnswerEvent::Kind::placed, .pending_answer = request.pending_answer, .result = result};
}
AnswerEvent atomic_executed(const AnswerRecord& request, std::uint64_t original, Result result = Result::ok) {
  return {.slot = kSlot,
          .kind = AnswerEvent::Kind::atomic,
          .pending_answer = request.pending_answer,
          .saved = request.saved,
          .result = result,
          .original = original};
}

struct Brief {
  Opcode opcode;
  std::uint32_t psn;
  std::uint8_t syndrome = kAck;
  bool operator==(const Brief&) const = default;
  friend void PrintTo(const Brief& brief, std::ostream* out) {
    *out << roce::info(brief.opcode).name << " psn " << brief.psn << " syndrome " << int{brief.syndrome};
  }
};
std::vector<Brief> packets(const std::vector<AnswerRecord>& records) {
  std::vector<Brief> packets;
  for (const auto& one : only(records, AnswerOp::packet))
    packets.push_back({static_cast<Opcode>(one.opcode), one.psn, one.syndrome});
  return packets;
}
Brief ack(std::uint32_t psn) { return {Opcode::acknowledge, psn}; }
Brief nak(std::uint32_t psn, std::uint8_t syndrome) { return {Opcode::acknowledge, psn, syndrome}; }
std::vector<Verdict> verdicts(const std::vector<AnswerRecord>& records) {
  std::vector<Verdict> verdicts;
  for (const auto& one : only(records, AnswerOp::request)) verdicts.push_back(one.verdict);
  return verdicts;
}

// --- Acknowledgements.
TEST(QpEngineAcks, CoalesceWhatIsInMemoryAtOnce) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  std::vector<AnswerRecord> requests;
  for (std::uint32_t i = 0; i < 8; ++i) requests.push_back(bench.answer(request(Opcode::write_only, i, 64)).at(0));
  // Payload lands in any order: no ACK before the oldest has landed.
  for (const int i : {7, 3, 5, 1, 2, 4, 6}) EXPECT_THAT(bench.answer(placed(requests[i])), SizeIs(1));
  const auto all = bench.answer(placed(requests[0]));
  EXPECT_THAT(packets(all), ElementsAre(ack(7)));
  EXPECT_EQ(all.back().msn, 8u);
}

TEST(QpEngineAcks, CoalesceWhenNoMoreMayBeAhead) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  std::size_t acks = 0;
  for (std::uint32_t i = 0; i < 100; ++i) acks += packets(bench.answer(request(Opcode::write_only, i))).size();
  EXPECT_EQ(acks, 32u);
  EXPECT_THAT(packets(bench.answer(left(32))), ElementsAre(ack(99)));
}

TEST(QpEngineAcks, CoalesceWhileTheirRecordWaits) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  std::vector<AnswerRecord> requests;
  for (std::uint32_t i = 0; i < 32; ++i) requests.push_back(bench.answer(request(Opcode::write_only, i, 64)).at(0));
  for (const auto& one : requests) bench.push(placed(one));
  for (int i = 0; i < 2000; ++i) {
    bench.takes_answers = i % 16 == 0;
    bench.cycle();
  }
  // Events precede packets: the ACK is the last record.
  EXPECT_THAT(packets(bench.take_answers()), ElementsAre(ack(31)));
}

TEST(QpEngineAcks, ComeWhereTheyAreAskedFor) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  auto first = request(Opcode::write_first, 0, kMtu, 3 * kMtu);
  auto middle = request(Opcode::write_middle, 1, kMtu);
  first.ack_request = middle.ack_request = false;
  const auto one = bench.answer(first).at(0), two = bench.answer(middle).at(0);
  const auto three = bench.answer(request(Opcode::write_last, 2, kMtu)).at(0);
  EXPECT_EQ(two.address, 0x20000u + kMtu);
  EXPECT_EQ(three.offset, 2 * kMtu);
  EXPECT_EQ(three.message_bytes, 3 * kMtu);
  EXPECT_TRUE(three.completes);
  EXPECT_THAT(packets(bench.answer(placed(one), placed(two))), IsEmpty());
  EXPECT_THAT(packets(bench.answer(placed(three))), ElementsAre(ack(2)));
}

TEST(QpEngineAcks, ReceivesCompleteInOrderAndBeforeTheirAcknowledgement) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto one = bench.answer(request(Opcode::send_only, 0, 10)).at(0);
  const auto two = bench.answer(request(Opcode::write_only_imm, 1, 10)).at(0);
  const auto three = bench.answer(request(Opcode::send_only_imm, 2, 10)).at(0);
  EXPECT_TRUE(one.completes_receive && two.completes_receive && three.completes_receive);
  EXPECT_THAT(bench.answer(placed(three), placed(two)), SizeIs(2));
  const auto all = bench.answer(placed(one));
  std::vector<AnswerOp> ops;
  for (const auto& record : all) ops.push_back(record.op);
  EXPECT_THAT(
      ops, ElementsAre(AnswerOp::event, AnswerOp::complete, AnswerOp::complete, AnswerOp::complete, AnswerOp::packet));
  EXPECT_THAT(packets(all), ElementsAre(ack(2)));
}

// --- Lost and duplicate requests.
TEST(QpEngineDuplicates, OfEachKindAreAnsweredAgain) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto write = request(Opcode::write_only, 0, 64), send = request(Opcode::send_only, 1, 64);
  const auto read = request(Opcode::read_request, 2, 0, 3 * kMtu), atomic = request(Opcode::fetch_add, 5);
  bench.answer(placed(bench.answer(write).at(0)));
  bench.answer(placed(bench.answer(send).at(0)));
  EXPECT_THAT(packets(bench.answer(read)), SizeIs(3));
  EXPECT_THAT(packets(bench.answer(atomic_executed(bench.answer(atomic).at(0), 0xfeed))),
              ElementsAre(Brief{Opcode::atomic_acknowledge, 5}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(packets(bench.answer(write)), ElementsAre(ack(5)));
    EXPECT_THAT(packets(bench.answer(send)), ElementsAre(ack(5)));
    const auto again = bench.answer(read);
    EXPECT_THAT(packets(again),
                ElementsAre(Brief{Opcode::read_response_first, 2}, Brief{Opcode::read_response_middle, 3},
                            Brief{Opcode::read_response_last, 4}));
    EXPECT_EQ(again.back().address, 0x20000u + 2 * kMtu);
    // The saved result is sent, and the atomic is not executed again.
    const auto replayed = bench.answer(atomic);
    EXPECT_THAT(verdicts(replayed), ElementsAre(Verdict::replay));
    EXPECT_EQ(replayed.back().original, 0xfeedu);
    EXPECT_TRUE(replayed.back().duplicate);
  }
  // A repeated READ of the last packet only.
  auto end = request(Opcode::read_request, 4, 0, kMtu);
  EXPECT_THAT(packets(bench.answer(end)), ElementsAre(Brief{Opcode::read_response_only, 4}));
  // A repeated READ beyond the original range, or without access, is dropped.
  EXPECT_THAT(packets(bench.answer(request(Opcode::read_request, 4, 0, 3 * kMtu))), IsEmpty());
  end.access_granted = false;
  EXPECT_THAT(verdicts(bench.answer(end)), ElementsAre(Verdict::drop));
}

TEST(QpEngineDuplicates, OfAnAtomicThatIsNotExecutedYetAreDropped) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto atomic = request(Opcode::compare_swap, 0);
  const auto accepted = bench.answer(atomic).at(0);
  EXPECT_EQ(accepted.verdict, Verdict::atomic);
  EXPECT_THAT(verdicts(bench.answer(atomic)), ElementsAre(Verdict::drop));
  EXPECT_THAT(packets(bench.answer(atomic_executed(accepted, 3))), ElementsAre(Brief{Opcode::atomic_acknowledge, 0}));
  EXPECT_THAT(verdicts(bench.answer(atomic)), ElementsAre(Verdict::replay));
}

TEST(QpEngineDuplicates, AsManyResultsAreKeptAsWereAgreedOn) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto records = bench.answer(atomic_executed(bench.answer(request(Opcode::fetch_add, i)).at(0), 100 + i));
    ASSERT_EQ(records.back().original, 100 + i);
    bench.answer(left(1));
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto records = bench.answer(request(Opcode::fetch_add, i));
    EXPECT_EQ(verdicts(records).at(0), i < 16 ? Verdict::drop : Verdict::replay) << i;
    if (i >= 16) {
      EXPECT_EQ(records.back().op, AnswerOp::packet);
      EXPECT_EQ(records.back().original, 100 + i);
    }
  }
}

// Results that were discarded do not return when the limit is raised.
TEST(QpEngineDuplicates, ResultsThatWereLetGoOfStayGone) {
  for (const std::uint8_t more : {8, 16}) {
    Bench bench;
    auto control = answer_start(kSlot, 0);
    bench.start(control);
    for (std::uint32_t i = 0; i < 12; ++i)
      bench.answer(atomic_executed(bench.answer(request(Opcode::fetch_add, i)).at(0), i));
    control.kind = Control::update;
    control.max_dest_rd_atomic = more;
    bench.answer(control);
    for (std::uint32_t i = 0; i < 12; ++i) {
      EXPECT_EQ(verdicts(bench.answer(request(Opcode::fetch_add, i))).at(0), i < 8 ? Verdict::drop : Verdict::replay)
          << i;
    }
  }
}

// A repeated READ before the pending repeated READs: the requester went back once more.
TEST(QpEngineDuplicates, OfReadsAreForgottenWhenTheRequesterGoesBackFurther) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto read = [](std::uint32_t psn) { return request(Opcode::read_request, psn, 0, 2 * kMtu); };
  bench.answer(read(0), read(2), read(4));
  for (std::uint32_t psn = 6; psn < 32; psn += 2) bench.answer(read(psn));
  // 32 packets are unacknowledged: nothing more is sent.
  EXPECT_THAT(packets(bench.answer(read(28), read(30))), IsEmpty());
  EXPECT_THAT(packets(bench.answer(read(2), read(4), read(4), read(3))), IsEmpty()) << "the last is among them";
  const auto again = packets(bench.answer(left(32)));
  EXPECT_THAT(again, ElementsAre(Brief{Opcode::read_response_first, 2}, Brief{Opcode::read_response_last, 3},
                                 Brief{Opcode::read_response_first, 4}, Brief{Opcode::read_response_last, 5}));
}

TEST(QpEngineDuplicates, MoreReadsThanWereAgreedOnAreDropped) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  for (std::uint32_t psn = 0; psn < 32; ++psn) bench.answer(request(Opcode::read_request, psn, 0, 8));
  for (std::uint32_t psn = 10; psn < 20; ++psn)
    EXPECT_EQ(verdicts(bench.answer(request(Opcode::read_request, psn, 0, 8))).at(0),
              psn < 14 ? Verdict::read : Verdict::drop);
  EXPECT_THAT(packets(bench.answer(left(32))), SizeIs(4));
}

// Half of all PSNs are duplicates, the other half are ahead.
TEST(QpEngineDuplicates, ReachHalfTheWayRound) {
  constexpr std::uint32_t kHalf = 1u << 23;
  for (const std::uint32_t expected : {0u, 5u, 0x812345u, 0xffffffu}) {
    Bench bench;
    bench.start(answer_start(kSlot, expected));
    const auto at = [&](std::uint32_t psn) { return (expected + psn) & 0xffffff; };
    for (const auto opcode : {Opcode::write_only, Opcode::read_request, Opcode::fetch_add}) {
      const auto farthest = bench.answer(request(opcode, at(kHalf))).at(0);
      EXPECT_TRUE(farthest.duplicate) << expected;
      EXPECT_EQ(farthest.verdict, opcode == Opcode::write_only ? Verdict::acknowledge : Verdict::drop);
      EXPECT_TRUE(bench.answer(request(opcode, at(0xffffff))).at(0).duplicate);
    }
    const auto ahead = bench.answer(request(Opcode::write_only, at(kHalf - 1)));
    EXPECT_THAT(verdicts(ahead), ElementsAre(Verdict::reject));
    EXPECT_THAT(packets(ahead), ElementsAre(nak(expected, Aeth::kSequenceError)));
  }
}

// The same while an answer is pending.
TEST(QpEngineDuplicates, ReachHalfTheWayRoundWhileAnAnswerIsPending) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto write = bench.answer(request(Opcode::write_only, 0, 8)).at(0);
  EXPECT_EQ(bench.answer(request(Opcode::read_request, 0x800001, 0, 8)).at(0).verdict, Verdict::drop);
  EXPECT_THAT(packets(bench.answer(placed(write))), ElementsAre(ack(0)));
}

TEST(QpEngineGaps, AreToldOnce) {
  Bench bench;
  bench.start(answer_start(kSlot, 10));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 12))), ElementsAre(nak(10, Aeth::kSequenceError)));
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 13), request(Opcode::fetch_add, 14))),
              ElementsAre(Verdict::drop, Verdict::drop));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 10))), ElementsAre(ack(10)));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 12))), ElementsAre(nak(11, Aeth::kSequenceError)));
}

TEST(QpEngineGaps, AReceiverThatIsNotReadySaysSoOnce) {
  Bench bench;
  bench.start(answer_start(kSlot, 10));
  auto send = request(Opcode::send_only, 10, 8);
  send.receive_available = false;
  EXPECT_THAT(packets(bench.answer(send)), ElementsAre(nak(10, Aeth::kRnrNak | 12)));
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 11))), ElementsAre(Verdict::drop));
  EXPECT_THAT(packets(bench.answer(send)), ElementsAre(nak(10, Aeth::kRnrNak | 12))) << "it has come again";
  send.receive_available = true;
  EXPECT_THAT(packets(bench.answer(placed(bench.answer(send).at(0)))), ElementsAre(ack(10)));
}

TEST(QpEngineGaps, AcrossTheLastPsn) {
  Bench bench;
  bench.start(answer_start(kSlot, 0xfffffe));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 0xfffffe))), ElementsAre(ack(0xfffffe)));
  EXPECT_THAT(packets(bench.answer(request(Opcode::read_request, 0xffffff, 0, 3 * kMtu))),
              ElementsAre(Brief{Opcode::read_response_first, 0xffffff}, Brief{Opcode::read_response_middle, 0},
                          Brief{Opcode::read_response_last, 1}));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 3))), ElementsAre(nak(2, Aeth::kSequenceError)));
  EXPECT_THAT(packets(bench.answer(request(Opcode::read_request, 0xffffff, 0, 3 * kMtu))), SizeIs(3));
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 2))), ElementsAre(ack(2)));
}

// --- Order and limits.
TEST(QpEngineOrder, AnAtomicWaitsForPayloadBeforeItAndHoldsUpWhatFollows) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto write = bench.answer(request(Opcode::write_only, 0, 8)).at(0);
  const auto atomic = request(Opcode::fetch_add, 1), next = request(Opcode::write_only, 2, 8);
  EXPECT_THAT(verdicts(bench.answer(atomic)), ElementsAre(Verdict::busy));
  bench.answer(placed(write));
  const auto accepted = bench.answer(atomic).at(0);
  EXPECT_EQ(accepted.verdict, Verdict::atomic);
  EXPECT_THAT(verdicts(bench.answer(next)), ElementsAre(Verdict::busy));
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::read_request, 2, 0, 8))), ElementsAre(Verdict::read));
  const auto answered = packets(bench.answer(atomic_executed(accepted, 1)));
  EXPECT_THAT(answered, ElementsAre(Brief{Opcode::atomic_acknowledge, 1}, Brief{Opcode::read_response_only, 2}));
}

TEST(QpEngineOrder, NothingIsTakenWhenPendingAnswersAreFull) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  std::vector<AnswerRecord> requests;
  for (std::uint32_t i = 0; i < kPendingAnswers; ++i)
    requests.push_back(bench.answer(request(Opcode::write_only, i, 8)).at(0));
  for (const auto& one :
       {request(Opcode::write_only, 32, 8), request(Opcode::write_only, 3, 8), request(Opcode::fetch_add, 3),
        request(Opcode::write_only, 40, 8), request(Opcode::read_request, 32, 0, 8)})
    EXPECT_THAT(verdicts(bench.answer(one)), ElementsAre(Verdict::busy)) << one.psn;
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::acknowledge, 32))), ElementsAre(Verdict::drop));
  EXPECT_THAT(packets(bench.answer(placed(requests[0]))), ElementsAre(ack(0)));
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 32, 8))), ElementsAre(Verdict::place));
}

// A queue pair that requested a turn, and requested again when it had the turn, may find that it may not send.
TEST(QpEngineOrder, NoMoreThan32AreAheadThoughTurnsAreLeft) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  bench.push(request(Opcode::read_request, 0, 0, 64 * kMtu));
  std::size_t sent = 0;
  for (int i = 0; i < 2000; ++i) {
    bench.cycle();
    for (const auto& one : packets(bench.take_answers())) {
      EXPECT_EQ(one.psn, sent++);
      bench.push(left(0));
    }
  }
  EXPECT_EQ(sent, 32u);
  EXPECT_THAT(packets(bench.answer(left(32))), SizeIs(32));
}

TEST(QpEngineOrder, ReadsAreAnsweredInTheirTurn) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto write = bench.answer(request(Opcode::write_only, 0, 8)).at(0);
  EXPECT_THAT(packets(bench.answer(request(Opcode::read_request, 1, 0, 2 * kMtu))), IsEmpty());
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 3))), IsEmpty());
  EXPECT_THAT(packets(bench.answer(placed(write))),
              ElementsAre(ack(0), Brief{Opcode::read_response_first, 1}, Brief{Opcode::read_response_last, 2}, ack(3)));
}

// --- Refused requests.
struct Refusal {
  friend void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }
  const char* name;
  Request request;
  std::uint8_t syndrome;
  bool access_event, request_event;
  std::uint8_t receive_status = 0;
};
class QpEngineRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(QpEngineRefuses, Fatally) {
  Bench bench;
  auto control = answer_start(kSlot, 0);
  control.max_message = 1000;
  control.max_dest_rd_atomic = 0;
  control.allow_read = false;
  bench.start(control);
  const auto records = bench.answer(GetParam().request);
  EXPECT_THAT(verdicts(records), ElementsAre(Verdict::reject));
  EXPECT_THAT(packets(records), ElementsAre(nak(0, GetParam().syndrome)));
  EXPECT_TRUE(records.front().fatal && records.back().fatal);
  EXPECT_EQ(records[0].access_event, GetParam().access_event);
  EXPECT_EQ(records[0].request_event, GetParam().request_event);
  EXPECT_EQ(records[0].receive_status, GetParam().receive_status);
  // The QP no longer accepts requests.
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 0))), ElementsAre(Verdict::drop));
}

Request with(Request request, auto change) {
  change(request);
  return request;
}
INSTANTIATE_TEST_SUITE_P(
    All, QpEngineRefuses,
    ::testing::Values(
        Refusal{"no_opcode", with(request(Opcode::send_only, 0), [](auto& r) { r.opcode = 0xe0; }), 0x61, false, true},
        Refusal{"other_transport", request(Opcode::uc_write_only, 0), 0x61, false, true},
        Refusal{"middle_of_nothing", request(Opcode::send_middle, 0, kMtu), 0x61, false, true},
        Refusal{"not_allowed", request(Opcode::read_request, 0, 0, 8), 0x62, true, false},
        Refusal{"none_agreed_on", request(Opcode::fetch_add, 0), 0x61, false, true},
        Refusal{"short_of_the_mtu", request(Opcode::send_first, 0, kMtu - 1), 0x61, false, true},
        Refusal{"beyond_the_mtu", request(Opcode::send_only, 0, kMtu + 1), 0x61, false, true},
        Refusal{"beyond_the_receive", with(request(Opcode::send_only, 0, 9), [](auto& r) { r.receive_bytes = 8; }),
                0x61, false, false, 1},
        Refusal{"longer_than_any", request(Opcode::write_first, 0, kMtu, 1001), 0x61, false, true},
        Refusal{"not_what_was_named", request(Opcode::write_only, 0, 9, 10), 0x61, false, true},
        Refusal{"first_that_ends", request(Opcode::write_first, 0, kMtu, kMtu), 0x61, false, true},
        Refusal{"no_key", with(request(Opcode::write_only, 0, 8), [](auto& r) { r.access_granted = false; }), 0x62,
                true, false},
        Refusal{"no_key_with_immediate",
                with(request(Opcode::write_only_imm, 0, 8), [](auto& r) { r.access_granted = false; }), 0x62, false,
                false, 8}),
    [](const auto& info) { return info.param.name; });

TEST(QpEngineRefusals, OfAMessageInItsMiddle) {
  const struct {
    const char* why;
    Request request;
  } kRefused[] = {
      {"another begins", request(Opcode::write_only, 1, 8)},
      {"another kind goes on", request(Opcode::send_middle, 1, kMtu)},
      {"it ends too early", request(Opcode::write_last, 1, 8)},
      {"it goes on too long", request(Opcode::write_middle, 1, kMtu)},
      {"a last one of nothing", request(Opcode::write_last, 1, 0)},
  };
  for (const auto& [why, refused] : kRefused) {
    Bench bench;
    bench.start(answer_start(kSlot, 0));
    bench.answer(placed(bench.answer(request(Opcode::write_first, 0, kMtu, 2 * kMtu)).at(0)));
    EXPECT_THAT(packets(bench.answer(refused)), ElementsAre(nak(1, Aeth::kInvalidRequest))) << why;
  }
}

TEST(QpEngineRefusals, AsManyReadsAndAtomicsAsWereAgreedOn) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto atomic = bench.answer(request(Opcode::fetch_add, 0)).at(0);
  for (std::uint32_t psn = 1; psn < 4; ++psn) bench.answer(request(Opcode::read_request, psn, 0, 8));
  const auto fifth = bench.answer(request(Opcode::read_request, 4, 0, 8));
  EXPECT_THAT(verdicts(fifth), ElementsAre(Verdict::reject));
  EXPECT_THAT(packets(fifth), IsEmpty()) << "in its turn";
  EXPECT_THAT(packets(bench.answer(atomic_executed(atomic, 0))), SizeIs(5));
}

// Both facts are asked for first; nothing changes before both are known.
TEST(QpEngineRefusals, NothingIsDecidedBeforeAllIsKnown) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  auto both = request(Opcode::write_only_imm, 0, 8);
  both.receive_known = both.access_known = false;
  EXPECT_THAT(verdicts(bench.answer(both)), ElementsAre(Verdict::want_receive));
  both.receive_known = true;
  const auto wants = bench.answer(both).at(0);
  EXPECT_EQ(wants.verdict, Verdict::want_access);
  EXPECT_EQ(wants.address, both.address);
  EXPECT_EQ(wants.length, 8u);
  EXPECT_EQ(bench.answer(AnswerControl{.slot = kSlot, .kind = Control::query}).at(0).psn, 0u);
  both.access_known = true;
  EXPECT_THAT(verdicts(bench.answer(both)), ElementsAre(Verdict::place));
  EXPECT_EQ(bench.answer(AnswerControl{.slot = kSlot, .kind = Control::query}).at(0).psn, 1u);
}

// --- Unreachable memory.
TEST(QpEngineFailures, APayloadThatCannotBeWrittenIsTold) {
  for (const auto result : {Result::access, Result::operation}) {
    for (const bool to_receive : {true, false}) {
      Bench bench;
      bench.start(answer_start(kSlot, 0));
      const auto one = bench.answer(request(Opcode::write_only, 0, 8)).at(0);
      const auto two = bench.answer(request(to_receive ? Opcode::send_only : Opcode::write_only, 1, 8)).at(0);
      const auto three = bench.answer(request(Opcode::write_only, 2, 8)).at(0);
      EXPECT_THAT(packets(bench.answer(placed(two, result), placed(three))), IsEmpty()) << "in its turn";
      const auto records = bench.answer(placed(one));
      const bool access = result == Result::access && !to_receive;
      EXPECT_THAT(packets(records),
                  ElementsAre(ack(0), nak(1, access ? Aeth::kRemoteAccessError : Aeth::kRemoteOperationError)));
      const auto failed = only(records, AnswerOp::failed).at(0);
      EXPECT_EQ(failed.had_cqe, to_receive);
      EXPECT_EQ(failed.access_event, access);
      EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 3))), ElementsAre(Verdict::drop));
    }
  }
}

TEST(QpEngineFailures, AnAtomicThatCannotBeExecutedIsNotReplayed) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto atomic = request(Opcode::fetch_add, 0);
  const auto records = bench.answer(atomic_executed(bench.answer(atomic).at(0), 1, Result::operation));
  EXPECT_THAT(packets(records), ElementsAre(nak(0, Aeth::kRemoteOperationError)));
  EXPECT_THAT(verdicts(bench.answer(atomic)), ElementsAre(Verdict::drop));
}

TEST(QpEngineFailures, DataOfAReadThatCannotBeHadIsToldInItsPlace) {
  for (const auto result : {Result::access, Result::operation}) {
    Bench bench;
    bench.start(answer_start(kSlot, 0));
    EXPECT_THAT(packets(bench.answer(request(Opcode::read_request, 0, 0, 40 * kMtu))), SizeIs(32));
    const AnswerEvent failed{.slot = kSlot, .kind = AnswerEvent::Kind::failed, .result = result, .psn = 2};
    EXPECT_THAT(packets(bench.answer(left(32), failed)),
                ElementsAre(nak(2, result == Result::access ? Aeth::kRemoteAccessError : Aeth::kRemoteOperationError)));
    EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 4))), ElementsAre(Verdict::drop));
  }
}

// --- Commands.
TEST(QpEngineAnswerCommands, ErrorForgetsPendingAnswers) {
  Bench bench;
  bench.start(answer_start(kSlot, 0));
  const auto write = bench.answer(request(Opcode::write_only, 0, 8)).at(0);
  bench.answer(request(Opcode::read_request, 1, 0, 8));
  const AnswerControl query{.slot = kSlot, .kind = Control::query};
  EXPECT_FALSE(bench.answer(query).at(0).idle);
  EXPECT_THAT(bench.answer(AnswerControl{.slot = kSlot, .kind = Control::error}), SizeIs(1));
  EXPECT_TRUE(bench.answer(query).at(0).idle);
  EXPECT_THAT(bench.answer(placed(write)), SizeIs(1)) << "late, and of no consequence";
  EXPECT_THAT(verdicts(bench.answer(request(Opcode::write_only, 2))), ElementsAre(Verdict::drop));
}

TEST(QpEngineAnswerCommands, UpdateCountsFromNowOn) {
  Bench bench;
  auto control = answer_start(kSlot, 0);
  bench.start(control);
  control.kind = Control::update;
  control.remote_qpn = 0xfedcba;
  control.min_rnr_timer = 3;
  control.allow_write = false;
  bench.answer(control);
  auto send = request(Opcode::send_only, 0, 8);
  send.receive_available = false;
  const auto refused = bench.answer(send);
  EXPECT_THAT(packets(refused), ElementsAre(nak(0, Aeth::kRnrNak | 3)));
  EXPECT_EQ(refused.back().destination, 0xfedcbau);
  EXPECT_THAT(packets(bench.answer(request(Opcode::write_only, 0, 8))), ElementsAre(nak(0, Aeth::kRemoteAccessError)));
}

TEST(QpEngineAnswerCommands, QueuePairsAnswerInTurns) {
  Bench bench;
  for (unsigned slot = 0; slot < kSlots; ++slot) bench.start(answer_start(static_cast<std::uint8_t>(slot), 0));
  bench.takes_answers = false;
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    auto read = request(Opcode::read_request, 0, 0, 8 * kMtu);
    read.slot = static_cast<std::uint8_t>(slot * 37);
    bench.push(read);
  }
  bench.takes_answers = true;
  bench.settle();
  const auto all = only(bench.take_answers(), AnswerOp::packet);
  ASSERT_THAT(all, SizeIs(8 * kSlots));
  // Requests precede answers: all QPs take part after the last request was checked.
  std::vector<unsigned> seen(kSlots);
  for (const auto& packet : all) {
    EXPECT_EQ(packet.psn, seen[packet.slot]++);
  }
}

}  // namespace
}  // namespace rnicsim::rtl::test::qp_engine_answer
